// Describes how a life ended and what a mission's agent is doing, for status, why, resume notes and alerts. Pure.
import { describeDuration } from "../platform/duration.ts";
import { LazarusError, messageOf, systemErrorCode } from "../platform/errors.ts";
import { isSettled, type MissionRecord, type RecordedEnd } from "./record/record.ts";

/** For example "killed by SIGKILL", "exited with code 3", "exited 0". */
export function describeEnd(end: RecordedEnd): string {
  const stall = end.evidence.find(({ kind }) => kind === "stall");
  if (end.kind === "stall") return `killed: stalled, ${stall?.says ?? "no activity within its limit"}`;
  if (end.kind === "departure" && end.exit_code !== 0) return `finished, then ${describeExit(end)}`;
  if (end.exit_code === 0) return end.kind === "departure" ? "exited 0" : "exited 0 before it had finished";
  return describeExit(end);
}

function describeExit(end: RecordedEnd): string {
  if (end.signal !== null) {
    const oom = end.evidence.some(({ kind }) => kind === "oom");
    return `killed by ${end.signal}${oom ? " (out of memory)" : ""}`;
  }
  if (end.exit_code !== null) return `exited with code ${end.exit_code}`;
  const cause = end.evidence.find(({ kind }) =>
    ["reboot", "keeper-vanished", "never-started"].includes(kind),
  );
  if (cause?.kind === "reboot") return "ended by a reboot";
  if (cause?.kind === "never-started") return "failed to start";
  return "lost when its keeper was killed";
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

/** The state of a mission's agent. */
export type AgentState = (typeof STATES)[number];

/** `alive`: whether the keeper holds its lock. */
export function stateOf(record: MissionRecord | undefined, alive: boolean): AgentState {
  if (record === undefined || record.life === null) return "none";
  const { wish, life, end, decision } = record;
  // The recorded life has ended and its lock is held again: the next life is starting.
  if (alive && end?.epoch === life.epoch) return "reviving";
  if (alive) return wish === "paused" ? "paused" : wish === "running" ? "running" : "ending";
  if (end?.epoch !== life.epoch) return "ending";
  if (wish !== "running") return wish;
  if (decision?.epoch !== life.epoch) return "ending";
  if (decision.action === "tombstone") return "tombstone";
  if (decision.action === "ask") return "asking";
  if (decision.action === "rest") return end.kind === "departure" ? "finished" : "dead";
  return decision.at_ms === null ? "dead" : "waiting";
}

/** The checkpoint of the last life has failed so far, and is retried. */
export function hasFailedCheckpoint({ life, scene }: MissionRecord): boolean {
  return scene !== null && scene.epoch === life?.epoch && !isSettled(scene);
}

/** What happens next, for one column of a table. */
export function nextAction(
  record: MissionRecord | undefined,
  state: AgentState,
  nowMs: number,
  pitRuns: boolean,
): string {
  switch (state) {
    case "reviving":
      return "starting";
    case "paused":
      return "continue with revive";
    case "ending":
      if (record !== undefined && hasFailedCheckpoint(record)) return "for details: lazarus why";
      return pitRuns ? "being handled" : "needs pit or revive";
    case "waiting": {
      const waitMs = (record?.decision?.at_ms ?? nowMs) - nowMs;
      const action = record?.decision?.action === "substitute" ? "substitute" : "revive";
      if (!pitRuns) return `${action} when a pit runs`;
      return waitMs <= 0 ? `${action} now` : `${action} in ${formatDuration(waitMs)}`;
    }
    case "asking":
      return "to approve: lazarus revive";
    case "tombstone":
      return "for details: lazarus why";
    default:
      return "-";
  }
}

/** What the user should know about the agent's conversation now; nothing when all is as usual. */
export function describeConversation({
  mission_id: mission,
  root,
  silent_hooks: isSilent,
  waits_for_user: waits,
  record,
}: {
  readonly mission_id: string;
  readonly root: string;
  readonly silent_hooks: boolean;
  readonly waits_for_user: boolean;
  readonly record: MissionRecord | null;
}): string[] {
  const agent = record?.life?.conversation?.adapter;
  if (agent === undefined) return [];
  return [
    ...(waits
      ? [
          `${agent} shows its conversation and waits for you; to continue: lazarus attach ${mission}, and type, for example: read ${root}/artifacts/handoff.md and continue`,
        ]
      : []),
    ...(isSilent
      ? [
          `hooks of ${agent} do not run, so a call that is cut off is known only if the conversation shows it; see: lazarus doctor`,
        ]
      : []),
  ];
}

/** The next commands when a mission's cell is gone: restore it, or start over when nothing was saved. */
export function commandsForMissingCell(mission: string, hasCheckpoint: boolean): string[] {
  return hasCheckpoint
    ? [`lazarus restore ${mission}`, `lazarus revive ${mission}`]
    : [`lazarus run ${mission} -- COMMAND`];
}

const RESTART =
  "restart the pit's service (systemd: systemctl --user restart 'lazarus-pit*'), or end the pit and run: lazarus pit; agents keep running";

/** An error and its hint in one line. */
export function describeError(error: unknown): string {
  if (error instanceof LazarusError && error.hint !== undefined)
    return `${error.message}; try: ${error.hint}`;
  if (systemErrorCode(error) === "ERR_MODULE_NOT_FOUND")
    return `a part of Lazarus that is loaded on demand is no longer on disk: Lazarus was upgraded or removed while this process was running; try: ${RESTART}`;
  return messageOf(error);
}

/** "1 h 54 min". */
export function formatDuration(ms: number): string {
  return describeDuration(ms / 1000);
}
