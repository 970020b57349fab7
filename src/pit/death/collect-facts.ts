// Collects what can be found out about how a life ended. Only reads, so `why` and a dry run see what the pit sees.
import { statfsSync, statSync } from "node:fs";
import { PATTERN_CLASSES } from "../../agents/adapter.ts";
import { failurePatterns } from "../../agents/adapters.ts";
import { cellPaths } from "../../cell/layout.ts";
import { type Exit, type Life, readExitOf, readLifeOf } from "../../cell/life.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import type { PitContext, ReadContext } from "../context.ts";
import { agentLog } from "../paths.ts";
import { countOomKills, findOomLine } from "../processes/oom.ts";
import { type MissionRecord, nextStep, type RecordedEnd } from "../record/record.ts";
import type { PitSettings } from "../settings.ts";
import { agentName } from "../start/revive.ts";
import { classifyEnd, type EndFacts, failedOnItsOwn } from "./classify-end.ts";
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

export interface CollectedFacts extends EndFacts {
  readonly search: Search;
}

const NO_SEARCH: Search = { words: undefined, skipped: [], newlySkipped: [] };

const TAIL_LINES = 40;
const FULL_BYTES = 1024 * 1024;

/** The life that the record names has ended. */
export async function collectFacts(
  { machine, config }: ReadContext,
  record: MissionRecord,
  { life, exit, settings, orphans = 0, sleptUntilMs }: Observations,
): Promise<CollectedFacts> {
  const { oom_kills: oomKillsBefore, log_bytes: logBytes } = record.life!;
  const cell = cellPaths(config, parseMissionId(record.mission));
  const log = agentLog(cell.root);
  const oomKillsNow = countOomKills();
  const logTail = readLogTail(log, TAIL_LINES, { from: logBytes ?? 0 });
  const killed = exit === undefined || exit.signal === "SIGKILL";
  return {
    record,
    settings,
    exit,
    sameBoot: life === undefined ? undefined : life.keeper.bootId === machine.processes.bootId(),
    orphans,
    lastSignMs: Math.max(modifiedMs(log), modifiedMs(cell.heartbeatFile)),
    logTail,
    search: failedOnItsOwn(record, exit)
      ? await searchPatterns(logTail, patternsOf(record, settings))
      : NO_SEARCH,
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
  context: Pick<PitContext, "machine" | "config" | "settings">,
  record: MissionRecord,
): Promise<RecordedEnd | undefined> {
  if (nextStep(record) !== "record-end") return undefined;
  const settings = context.settings(record);
  return classifyEnd(await collectFacts(context, record, { ...readKeeperFiles(context, record), settings }));
}

/** The user's patterns first, then those of the program that ran: a substitute may be another one. */
function patternsOf({ agent, life }: MissionRecord, settings: PitSettings): readonly Pattern[] {
  const program = life?.how === "substitute" ? agentName(life.command) : agent;
  const own = failurePatterns(program);
  const known = PATTERN_CLASSES.flatMap((each) =>
    (own[each] ?? []).map((pattern) => ({ class: each, pattern })),
  );
  return [...settings.patterns, ...known];
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
