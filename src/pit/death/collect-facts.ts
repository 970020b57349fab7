// What can be found out about how a life ended, before anyone judges it. Only reads: `why` and a dry run look the same
// way as the pit does, and change nothing.
import { statfsSync, statSync } from "node:fs";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import { type MissionRecord, nextStep, type RecordedEnd } from "../record/record.ts";
import type { PitSettings } from "../settings.ts";
import { type Life, readExit, readLife } from "../start/life.ts";
import { agentLog } from "../start/start-agent.ts";
import type { Looker } from "../view.ts";
import { type EndFacts, judgeEnd } from "./classify-end.ts";
import { readLastLines } from "./log-tail.ts";
import { countOomKills, findOomLine } from "./oom.ts";

export interface EndOptions {
  /** Processes that had outlived their keeper and were ended. */
  readonly survivors?: number;
  readonly sleptUntilMs?: number | undefined;
}

const LAST_LINES = 40;
const FULL_BYTES = 1024 * 1024;

/** Of the life that the record names, which is over. */
export async function gatherEndFacts(
  { machine, config }: Looker,
  record: MissionRecord,
  settings: PitSettings,
  { survivors = 0, sleptUntilMs }: EndOptions = {},
): Promise<EndFacts> {
  const { epoch, oom_kills: oomKillsBefore, log_bytes: logBytes } = record.life!;
  const cell = cellPaths(config, parseMissionId(record.mission));
  const log = agentLog(cell.root);
  const stored = readExit(config, record.mission);
  const exit = stored?.epoch === epoch ? stored : undefined;
  const life = lifeOf(readLife(config, record.mission), epoch);
  const oomKillsNow = countOomKills();
  const killed = exit === undefined || exit.signal === "SIGKILL";
  return {
    record,
    settings,
    exit,
    sameBoot: life === undefined ? undefined : life.keeper.bootId === machine.processes.bootId(),
    survivors,
    lastSignMs: Math.max(modifiedMs(log), modifiedMs(cell.heartbeatFile)),
    lastWords: readLastLines(log, LAST_LINES, { from: logBytes ?? 0 }),
    oomKillsNow,
    oomLine:
      killed && life !== undefined && oomKillsNow !== oomKillsBefore
        ? await findOomLine(life.agent.pid)
        : undefined,
    diskFull: fullDisk(cell.root),
    sleptUntilMs,
    nowMs: machine.clock.nowMs(),
  };
}

/** How a life ended that is over and that nobody has dealt with yet; undefined when someone has. */
export async function previewEnd(
  context: Pick<PitContext, "machine" | "config" | "settings">,
  record: MissionRecord,
): Promise<RecordedEnd | undefined> {
  if (nextStep(record) !== "record-end") return undefined;
  const settings = context.settings(parseMissionId(record.mission), record.agent);
  return judgeEnd(await gatherEndFacts(context, record, settings));
}

/** What the keeper wrote of an earlier life says nothing of this one. */
export function lifeOf(life: Life | undefined, epoch: number): Life | undefined {
  return life?.epoch === epoch ? life : undefined;
}

function modifiedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function fullDisk(path: string): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize < FULL_BYTES ? `less than 1 MiB is free where ${path} lies` : undefined;
  } catch {
    return undefined;
  }
}
