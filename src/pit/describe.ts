// One way to say how a life ended and what a mission's agent is doing now, for status, why, resume and alerts. Pure.
import { LazarusError } from "../platform/errors.ts";
import type { MissionRecord, RecordedEnd } from "./record/record.ts";

/** "killed by SIGKILL", "exit code 3", "finished" … */
export function describeEnd(end: RecordedEnd): string {
  const silent = end.evidence.find(({ kind }) => kind === "stall");
  if (end.kind === "stall") return `ended as stalled: ${silent?.says ?? "no activity past its limit"}`;
  if (end.kind === "departure") return "finished with exit code 0";
  if (end.signal !== null) {
    const oom = end.evidence.some(({ kind }) => kind === "oom");
    return `killed by ${end.signal}${oom ? " (out of memory)" : ""}`;
  }
  if (end.exit_code !== null) return `ended with exit code ${end.exit_code}`;
  const first = end.evidence.find(({ kind }) =>
    ["reboot", "keeper-vanished", "never-started"].includes(kind),
  );
  if (first?.kind === "reboot") return "gone after a restart of the machine";
  if (first?.kind === "never-started") return "was never quite started";
  return "gone with its keeper, which was killed";
}

export const STATES = [
  "running",
  "paused",
  "ending",
  "reviving",
  "waiting",
  "asking",
  "stopped",
  "resting",
  "finished",
  "dead",
  "tombstone",
  "none",
] as const;

export type AgentState = (typeof STATES)[number];

/** The one word for a mission's agent. `alive` is the kernel's word on its keeper. */
export function stateOf(record: MissionRecord | undefined, alive: boolean): AgentState {
  if (record === undefined || record.life === null) return "none";
  // The life that is recorded has ended and its lock is taken: the next one is being prepared.
  if (alive && record.end?.epoch === record.life.epoch) return "reviving";
  if (alive) return record.wish === "paused" ? "paused" : record.wish === "running" ? "running" : "ending";
  if (record.end?.epoch !== record.life.epoch || record.decision?.epoch !== record.life.epoch)
    return "ending";
  if (record.wish === "stopped") return "stopped";
  if (record.wish === "resting") return "resting";
  if (record.wish === "paused") return "paused";
  const { action, at_ms: atMs } = record.decision;
  if (action === "tombstone") return "tombstone";
  if (action === "ask") return "asking";
  if (action === "rest") return record.end.kind === "departure" ? "finished" : "dead";
  return atMs === null ? "dead" : "waiting";
}

/** What happens next, in a few words; `inWords` says a wait. */
export function nextAction(
  record: MissionRecord | undefined,
  state: AgentState,
  nowMs: number,
  pitRuns: boolean,
): string {
  switch (state) {
    case "none":
      return "-";
    case "running":
      return "-";
    case "reviving":
      return "begins in a moment";
    case "paused":
      return "goes on with revive";
    case "ending":
      return pitRuns ? "the pit is at it" : "decided by pit or revive";
    case "waiting": {
      const waitMs = (record?.decision?.at_ms ?? nowMs) - nowMs;
      const what = record?.decision?.action === "substitute" ? "substitute" : "revive";
      if (!pitRuns) return `${what} when the pit runs`;
      return waitMs <= 0 ? `${what} now` : `${what} in ${inWords(waitMs)}`;
    }
    case "asking":
      return "asks: lazarus revive";
    case "tombstone":
      return "needs you: lazarus why";
    default:
      return "-";
  }
}

/** An error as one line: what happened, and what to do about it. */
export function describeError(error: unknown): string {
  if (error instanceof LazarusError && error.hint !== undefined)
    return `${error.message}; try: ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

function inWords(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes}m` : `${Math.round(minutes / 60)}h`;
}
