// What the pit has to do at a given moment: a pure function, called every tick. supervisor.ts executes the actions.
import type { MissionId } from "../../cell/mission-id.ts";
import { type Reading, sleptMs, wasSetBack } from "./stall.ts";

/** Tasks of the pit itself, each with its own interval. */
export const PERIODIC_TASKS = ["heartbeat", "watchdog", "rescan", "check-silence", "live-points"] as const;

export type PeriodicTask = (typeof PERIODIC_TASKS)[number];

/** A running agent; times are monotonic. */
export interface AgentTimers {
  readonly mission: MissionId;
  /** Null: no scheduled checkpoints. */
  readonly checkpointEveryMs: number | null;
  readonly checkpointedMs: number;
  /** Undefined: no stall limit is set. */
  readonly stallCheckEveryMs: number | undefined;
  readonly stallCheckedMs: number;
}

export interface SupervisionState {
  readonly lastTick: Reading;
  /** Undefined: this task does not apply. */
  readonly intervalsMs: Readonly<Record<PeriodicTask, number | undefined>>;
  /** Monotonic. */
  readonly lastRunMs: Readonly<Record<PeriodicTask, number>>;
  /** Missions whose keeper has ended since the last tick. */
  readonly ended: readonly MissionId[];
  /** When to check a mission again. Wall clock: a quota resets at a fixed time, even if the host slept. */
  readonly nextChecksMs: ReadonlyMap<MissionId, number>;
  readonly agents: readonly AgentTimers[];
}

export type Action =
  | { readonly kind: "restart-timeouts"; readonly sleptMs: number }
  | { readonly kind: "check-mission"; readonly mission: MissionId }
  | { readonly kind: PeriodicTask }
  | { readonly kind: "check-stall"; readonly mission: MissionId }
  | { readonly kind: "checkpoint"; readonly mission: MissionId };

export function dueActions(state: SupervisionState, now: Reading): Action[] {
  const actions: Action[] = [];
  const slept = sleptMs(state.lastTick, now);
  if (slept > 0) actions.push({ kind: "restart-timeouts", sleptMs: slept });
  for (const mission of findMissionsToCheck(state, now)) actions.push({ kind: "check-mission", mission });
  const isDue = (everyMs: number, lastMs: number) => now.monotonicMs - lastMs >= everyMs;
  for (const task of PERIODIC_TASKS) {
    const everyMs = state.intervalsMs[task];
    if (everyMs !== undefined && isDue(everyMs, state.lastRunMs[task])) actions.push({ kind: task });
  }
  for (const { mission, stallCheckEveryMs, stallCheckedMs } of state.agents)
    if (stallCheckEveryMs !== undefined && isDue(stallCheckEveryMs, stallCheckedMs))
      actions.push({ kind: "check-stall", mission });
  for (const { mission, checkpointEveryMs, checkpointedMs } of state.agents)
    if (checkpointEveryMs !== null && isDue(checkpointEveryMs, checkpointedMs))
      actions.push({ kind: "checkpoint", mission });
  return actions;
}

function findMissionsToCheck(
  { lastTick, ended, nextChecksMs }: SupervisionState,
  now: Reading,
): Set<MissionId> {
  const missions = new Set(ended);
  // After the clock was set back, scheduled times may be far off; a check of the mission reschedules it.
  const all = wasSetBack(lastTick, now);
  for (const [mission, atMs] of nextChecksMs) if (all || atMs <= now.wallMs) missions.add(mission);
  return missions;
}
