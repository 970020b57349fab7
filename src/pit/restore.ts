// Restores the cell of a live agent: stop it, restore, revive it if it was running. One lock from the exit to the new life,
// so nothing else is started or restored in between. Killed in between, the agent stays stopped.
import { isKeeperAlive } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { Lock } from "../platform/lock.ts";
import { type RestoreResult, restoreCell } from "../snapshot/operations/restore.ts";
import { findTarget } from "../snapshot/operations/restore-target.ts";
import type { Part } from "../snapshot/restore/scope.ts";
import type { PitContext } from "./context.ts";
import { approveRevival, type MissionRecord } from "./record/record.ts";
import { readRecord, writeRecord } from "./record/store.ts";
import { reviveAgent } from "./start/revive.ts";
import type { Started } from "./start/start-agent.ts";
import { endAgent, type StopOptions, type StopResult } from "./stop.ts";
import { wakePit } from "./supervise/wake-file.ts";

export interface StoppedRestore<Result> {
  readonly result: Result;
  /** Undefined when no agent was alive. */
  readonly stopped: StopResult | undefined;
  /** Undefined when the agent was not running. */
  readonly revived: Started | undefined;
}

/** `restore` gets the mission's lock when an agent had to be stopped; otherwise it takes the lock itself. */
export async function restoreStopped<Result extends Pick<RestoreResult, "target">>(
  context: PitContext,
  mission: MissionId,
  restore: (heldLock: Lock | undefined) => Promise<Result>,
  options: StopOptions = {},
): Promise<StoppedRestore<Result>> {
  const { machine, config } = context;
  if (!isKeeperAlive(machine.processes, config, mission))
    return { result: await restore(undefined), stopped: undefined, revived: undefined };
  const wasWanted = readRecord(config, mission)?.wish === "running";
  const stop = { ...options, checkpoint: false, state: "stopped" } as const;
  return endAgent(context, mission, stop, async (stopped, lock) => {
    const result = await restore(lock);
    const { record } = stopped;
    const revive = wasWanted && stopped.wasRunning && record.command.length > 0;
    const revived = revive
      ? await reviveRestored(context, mission, record, result.target.id, lock)
      : undefined;
    return { result, stopped, revived };
  });
}

async function reviveRestored(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  restoredTo: string,
  heldLock: Lock,
): Promise<Started> {
  const { machine, config } = context;
  const approved = approveRevival(record, machine.clock.nowMs());
  writeRecord(machine, config, approved);
  const reason = "you restored the cell";
  const started = await reviveAgent(context, mission, approved, {
    how: "revival",
    stepBackTo: null,
    restoredTo,
    reason,
    heldLock,
  });
  wakePit(machine, config, mission);
  return started;
}

/** Which checkpoint and paths to restore, and whether to stop a live agent for it. */
export interface RestoreRequest {
  /** Id, prefix of an id, `latest`, or a time; default `latest`. */
  readonly checkpoint?: string | undefined;
  readonly paths?: readonly string[] | undefined;
  /** Only the files, or only the conversation; default: both. */
  readonly part?: Part | undefined;
  readonly stop?: boolean | undefined;
}

export async function restoreMission(
  context: PitContext,
  mission: MissionId,
  { checkpoint: text, paths = [], part, stop = false }: RestoreRequest = {},
): Promise<RestoreResult> {
  const missionContext = context.openMission(mission);
  // Before anything is stopped: afterwards, the checkpoint of the stop is the latest.
  const checkpoint = stop ? findTarget(missionContext, text).id : text;
  const restore = (heldLock?: Lock) =>
    restoreCell(missionContext, { checkpoint, paths, part, ...(heldLock && { heldLock }) });
  return stop ? (await restoreStopped(context, mission, restore)).result : restore();
}
