// Which process acts on a recorded decision, and whether it is due.
import { isAlive, type Processes } from "../../platform/process-identity.ts";
import { dropDecision, type MissionRecord } from "./record.ts";

/** Whether the command that has the agent's terminal is alive: that command handles the exit and the revival, not a pit. */
export function isInForeground(processes: Processes, record: MissionRecord | undefined): boolean {
  const owner = record?.life?.foreground;
  return owner != null && isAlive(processes, owner);
}

/** A revival is decided, but not due yet. False for a decision from the future: the clock was set back since. */
export function isAhead(record: MissionRecord, nowMs: number): boolean {
  const { wish, decision } = record;
  if (wish !== "running" || decision === null || decision.at_ms === null) return false;
  return decision.decided_ms <= nowMs && nowMs < decision.at_ms;
}

/** A revival is decided, and its time has come. */
export function isDue({ wish, decision }: MissionRecord, nowMs: number): boolean {
  return wish === "running" && decision !== null && decision.at_ms !== null && decision.at_ms <= nowMs;
}

/**
 * Drops a decision whose time passed more than `maxAgeMs` ago, so that it is made again. A decision from the future means
 * that the clock was set back: the wait restarts instead of growing.
 */
export function refreshDecision(record: MissionRecord, nowMs: number, maxAgeMs: number): MissionRecord {
  const { decision } = record;
  if (decision === null || decision.at_ms === null) return record;
  if (nowMs - decision.at_ms > maxAgeMs) return dropDecision(record);
  if (nowMs >= decision.decided_ms) return record;
  const waitMs = decision.at_ms - decision.decided_ms;
  return { ...record, decision: { ...decision, decided_ms: nowMs, at_ms: nowMs + waitMs } };
}
