// Collects what can be found out about how a life ended. Read-only, so `why` and a dry run come to the same result as the pit.
import { statfsSync, statSync } from "node:fs";
import { type Adapter, PATTERN_CLASSES } from "../../agents/adapter.ts";
import { failurePatterns } from "../../agents/adapters.ts";
import { cellPaths } from "../../cell/layout.ts";
import { type Exit, type Life, readExitOf, readLifeOf } from "../../cell/life.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import { openHistory } from "../../effects/history.ts";
import type { PitContext, ReadContext } from "../context.ts";
import { type KnownAgent, knownAgent } from "../conversation/known-agent.ts";
import { callsInFlight, readLifeReport, reportedFinished } from "../conversation/life-report.ts";
import { agentLog } from "../paths.ts";
import { countOomKills, findOomLine } from "../processes/oom.ts";
import type { LifeConversation } from "../record/conversation.ts";
import { type MissionRecord, nextStep, type RecordedEnd } from "../record/record.ts";
import type { PitSettings } from "../settings.ts";
import { agentName } from "../start/revive.ts";
import { type AgentReport, classifyEnd, type EndFacts, exitedWithFailure } from "./classify-end.ts";
import { describeCalls } from "./cut-off-calls.ts";
import { readLogTail } from "./log-tail.ts";
import { type Pattern, type Search, searchPatterns } from "./match-patterns.ts";

/** What the keeper left on disk about the life that the record names. */
export interface KeeperFiles {
  readonly life: Life | undefined;
  readonly exit: Exit | undefined;
}

export function readKeeperFiles({ config }: ReadContext, { mission, life }: MissionRecord): KeeperFiles {
  const { epoch } = life!;
  return { life: readLifeOf(config, mission, epoch), exit: readExitOf(config, mission, epoch) };
}

export interface Observations extends KeeperFiles {
  readonly settings: PitSettings;
  /** Processes that outlived their keeper and were killed. */
  readonly orphans?: number;
  readonly sleptUntilMs?: number | undefined;
}

type FactsContext = ReadContext & Pick<PitContext, "adapters">;

export interface CollectedFacts extends EndFacts {
  readonly search: Search;
}

const NO_SEARCH: Search = { words: undefined, skipped: [], newlySkipped: [] };

const TAIL_LINES = 40;
const FULL_BYTES = 1024 * 1024;

/** The life that the record names has ended. */
export async function collectFacts(
  context: FactsContext,
  record: MissionRecord,
  { life, exit, settings, orphans = 0, sleptUntilMs }: Observations,
): Promise<CollectedFacts> {
  const { machine, config } = context;
  const { oom_kills: oomKillsBefore, log_bytes: logBytes } = record.life!;
  const cell = cellPaths(config, parseMissionId(record.mission));
  const log = agentLog(cell.root);
  const oomKillsNow = countOomKills();
  const logTail = readLogTail(log, TAIL_LINES, {
    from: logBytes ?? 0,
    isTerminal: record.terminal != null,
  });
  const killed = exit === undefined || exit.signal === "SIGKILL";
  const report = await readReport(context, record, { exit, settings, logTail });
  return {
    record,
    settings,
    exit,
    sameBoot: life === undefined ? undefined : life.keeper.bootId === machine.processes.bootId(),
    orphans,
    lastSignMs: Math.max(modifiedMs(log), modifiedMs(cell.heartbeatFile)),
    logTail,
    search: exitedWithFailure(record, exit)
      ? await searchPatterns(logTail, patternsOf(context, record, settings))
      : NO_SEARCH,
    report,
    oomKillsNow,
    oomLine:
      killed && life !== undefined && oomKillsNow !== oomKillsBefore
        ? await findOomLine(life.agent.pid)
        : undefined,
    diskFull: describeFullDisk(cell.root) ?? (record.cwd === null ? undefined : describeFullDisk(record.cwd)),
    sleptUntilMs,
    nowMs: machine.clock.nowMs(),
  };
}

/** How a life ended that no pit has handled yet; undefined when one has. */
export async function previewEnd(
  context: FactsContext & Pick<PitContext, "settings">,
  record: MissionRecord,
): Promise<RecordedEnd | undefined> {
  if (nextStep(record) !== "record-end") return undefined;
  const settings = context.settings(record);
  return classifyEnd(await collectFacts(context, record, { ...readKeeperFiles(context, record), settings }));
}

/** The user's patterns first, then those of the program that ran: a substitute may be another one. */
function patternsOf(context: FactsContext, record: MissionRecord, settings: PitSettings): readonly Pattern[] {
  const { agent, life } = record;
  const isSubstitute = life?.how === "substitute";
  const adapter = isSubstitute ? undefined : knownAgent(context, record)?.adapter;
  const own = adapter?.patterns ?? failurePatterns(isSubstitute ? agentName(life.command) : agent);
  const known = PATTERN_CLASSES.flatMap((each) =>
    (own[each] ?? []).map((pattern) => ({ class: each, pattern })),
  );
  return [...settings.patterns, ...known];
}

/** What the agent CLI reports about its end. */
async function readReport(
  context: FactsContext,
  record: MissionRecord,
  { exit, settings, logTail }: Pick<CollectedFacts, "exit" | "settings" | "logTail">,
): Promise<AgentReport | undefined> {
  const report = readLifeReport(context, record, logTail);
  if (report === undefined) return undefined;
  const { agent, hooks, position, session } = report;
  const { epoch, conversation } = record.life!;
  const { root } = cellPaths(context.config, parseMissionId(record.mission));
  const history = openHistory(context.machine, root);
  const resumed = resumedSession(agent, conversation);
  const isUnknown = resumed !== null && (await reportsUnknownSession(agent.adapter, exit?.exitCode, logTail));
  return {
    isHeadless: agent.invocation.isHeadless,
    isFinished: reportedFinished(report, conversation?.turn ?? 0, exit?.exitCode ?? null),
    hasTurns: (position?.turn ?? 0) > 0,
    exitZeroMeansFinished: agent.adapter.exitZeroMeansFinished,
    failure: hooks.failure,
    unknownSession: isUnknown ? resumed : null,
    openCalls: await describeCalls(callsInFlight(report), epoch, settings.effectRules, history),
    session,
    turn: position?.turn ?? null,
  };
}

/** The session that this life was told to resume, by the pit or by the user (possibly without its id); null for a new one. */
function resumedSession(
  { invocation }: KnownAgent,
  conversation: LifeConversation | undefined,
): string | null {
  if (conversation?.how === "resume") return conversation.session;
  if (conversation?.how !== "start" || invocation.session === null) return null;
  return invocation.session === "newest" ? "that you chose" : invocation.session.id;
}

async function reportsUnknownSession(
  { unknownSession: { exitCodes, patterns } }: Adapter,
  exitCode: number | null | undefined,
  logTail: readonly string[],
): Promise<boolean> {
  if (exitCode == null || !exitCodes.includes(exitCode)) return false;
  if (patterns.length === 0) return true;
  const search = await searchPatterns(
    logTail,
    patterns.map((pattern) => ({ class: "permanent", pattern })),
  );
  return search.words !== undefined;
}

function modifiedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function describeFullDisk(path: string): string | undefined {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(path);
    if (bavail * bsize < FULL_BYTES) return `less than 1 MiB free at ${path}`;
    return files > 0 && ffree === 0 ? `no free inode at ${path}` : undefined;
  } catch {
    return undefined;
  }
}
