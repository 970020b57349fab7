// Whether a life ended because the user asked for it at the keyboard: Ctrl-C and the like are a stop, not a crash (INV-8).
import { agentPaths } from "../../cell/agent-paths.ts";
import { type Exit, readExitOf } from "../../cell/life.ts";
import type { PitContext } from "../context.ts";
import { type MissionRecord, setDesiredState } from "../record/record.ts";
import { writeRecord } from "../record/store.ts";
import { readInterrupt } from "../terminal/interrupt.ts";

/** A request to end. */
export interface StopRequest {
  readonly signal: NodeJS.Signals;
  /** Wall clock. */
  readonly atMs: number;
}

/**
 * Whether an agent ended because of a request: from the signal itself, or within its grace period afterwards. An agent
 * may use Ctrl-C for something else and crash later.
 */
export function endedByRequest(
  exit: Pick<Exit, "signal" | "endedMs"> | undefined,
  request: StopRequest | undefined,
  graceMs: number,
): boolean {
  if (request === undefined || exit === undefined) return false;
  return exit.signal === request.signal || exit.endedMs - request.atMs <= graceMs;
}

/** A human's stop; the caller holds the mission's lock. */
export function recordStop(context: PitContext, record: MissionRecord): MissionRecord {
  if (record.wish !== "running") return record;
  const { machine, config } = context;
  const stopped = setDesiredState(record, "stopped", machine.clock.nowMs());
  writeRecord(machine, config, stopped);
  context.recordEvent({ kind: "stop", mission: record.mission, data: { wish: "stopped" } });
  return stopped;
}

/**
 * Records a stop that was typed at the agent's own terminal, by any of its viewers. The key alone proves nothing: many
 * programs use Ctrl-C for other things, and one that another signal has killed did not end because of it.
 */
export function recordTypedStop(context: PitContext, record: MissionRecord): MissionRecord {
  const { mission, terminal, life } = record;
  if (terminal == null || life === null) return record;
  const exit = readExitOf(context.config, mission, life.epoch);
  const typed = readInterrupt(agentPaths(context.config, mission).interrupt, life.epoch);
  if (exit === undefined || (exit.signal !== null && exit.signal !== typed?.signal)) return record;
  const graceMs = context.settings(record).graceSeconds * 1000;
  return endedByRequest(exit, typed, graceMs) ? recordStop(context, record) : record;
}
