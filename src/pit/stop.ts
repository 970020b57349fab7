// Stops an agent for the user: latch, checkpoint, SIGTERM, grace period, SIGKILL, second checkpoint. The latch is
// durable before anything else happens (INV-8). While it waits for the agent, only the stop lock is held: a second stop may
// shorten the grace period, checkpoints and the pit keep working, and nothing is started or restored (src/cell/mission-lock.ts).
import type { Config } from "../cell/config.ts";
import { readEpoch } from "../cell/fence.ts";
import { isKnownMission, unknownMission } from "../cell/known-missions.ts";
import { findKeepers, isKeeperAlive } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { holdStopLock } from "../cell/mission-lock.ts";
import { crashPoint } from "../platform/crash-point.ts";
import { LazarusError, messageOf } from "../platform/errors.ts";
import type { Lock } from "../platform/lock.ts";
import type { PitContext } from "./context.ts";
import { capture, handleExit } from "./death/handle-exit.ts";
import { killAgent } from "./death/kill.ts";
import { type Latched, latchDesiredState } from "./latch.ts";
import { createBareRecord } from "./record/bare-record.ts";
import { beginLife, type DesiredState, type MissionRecord } from "./record/record.ts";
import { isRecordDamaged, readRecord, setAsideDamagedRecord } from "./record/store.ts";
import { keeperEpoch } from "./start/keeper-arguments.ts";
import { wakePit } from "./supervise/wake-file.ts";
import { endWatched } from "./watched.ts";

/** How to stop an agent. */
export interface StopOptions {
  /** False: no checkpoint before the agent gets SIGTERM. The one after its exit is always taken. */
  readonly checkpoint?: boolean;
  readonly graceSeconds?: number | undefined;
}

/** How an agent was stopped. */
export interface StopResult {
  readonly wasRunning: boolean;
  /** The checkpoint of what the agent left when it exited; null when it was not running or that checkpoint failed. */
  readonly checkpoint: string | null;
  /** The checkpoint from before it got SIGTERM; null when there is none. */
  readonly checkpointBefore: string | null;
  /** Why the checkpoint after its exit failed; the agent is stopped anyway. */
  readonly checkpointError: string | null;
  /** SIGKILL was needed. */
  readonly killed: boolean;
  readonly record: MissionRecord;
}

/** Stops the agent until the user revives it. */
export function stopMission(
  context: PitContext,
  mission: MissionId,
  options: StopOptions = {},
): Promise<StopResult> {
  return endAgent(context, mission, { ...options, state: "stopped" }, (result) => result);
}

/** Default grace period of a rest. */
export const REST_SECONDS = 60;

/** Ends the agent gracefully until the user revives it. */
export function restMission(
  context: PitContext,
  mission: MissionId,
  { graceSeconds = REST_SECONDS }: StopOptions = {},
): Promise<StopResult> {
  const options = { checkpoint: false, graceSeconds, state: "resting" } as const;
  return endAgent(context, mission, options, (result) => result);
}

interface EndOptions extends StopOptions {
  readonly state: Extract<DesiredState, "stopped" | "resting">;
}

/** Calls `then` under the mission's lock, before anything else can be started or restored. */
export async function endAgent<T>(
  context: PitContext,
  mission: MissionId,
  options: EndOptions,
  then: (result: StopResult, lock: Lock) => Promise<T> | T,
): Promise<T> {
  const { machine, config } = context;
  if (findRecord(context, mission) === undefined) throw noAgent(config, mission);
  using _ = await holdStopLock(machine, config, mission);
  const purpose = `${options.state === "stopped" ? "stop" : "rest"} of ${mission}`;
  const { record: latched, unrecorded } = await latch(context, mission, options.state, purpose);
  crashPoint("pit.stop.latched");
  const wasRunning = isKeeperAlive(machine.processes, config, mission);
  let checkpointBefore: string | null = null;
  let killed = false;
  if (wasRunning) {
    if (options.checkpoint !== false) checkpointBefore = await saveBefore(context, mission, latched.agent);
    crashPoint("pit.stop.saved");
    const graceMs = (options.graceSeconds ?? context.settings(latched).graceSeconds) * 1000;
    killed = await killAgent(context, latched, graceMs);
    await endWatched(machine, latched.life?.command ?? []);
  }
  crashPoint("pit.stop.ended");
  using lock = await context.lockMission(mission, purpose);
  if (unrecorded !== undefined) await latchAgain(context, latched, options.state);
  const exit = await handleExit(context, readRecord(config, mission) ?? latched);
  if (exit.state === "alive" || exit.state === "none") throw unkillable(mission);
  wakePit(machine, config, mission);
  const failed = exit.state === "checkpoint-failed";
  const result = {
    wasRunning,
    checkpoint: wasRunning && !failed ? (exit.record.scene?.checkpoint ?? null) : null,
    checkpointBefore,
    checkpointError: failed ? exit.error.message : wasRunning ? (exit.record.scene?.error ?? null) : null,
    killed,
    record: exit.record,
  };
  return await then(result, lock);
}

/** Written first: even if something fails later, the agent is not revived against the user's command. */
async function latch(
  context: PitContext,
  mission: MissionId,
  state: DesiredState,
  purpose: string,
): Promise<Latched> {
  using _ = await context.lockMission(mission, purpose);
  const found = findRecord(context, mission);
  if (found === undefined) throw noAgent(context.config, mission);
  setAsideDamagedRecord(context.machine, context.config, mission);
  const latched = await latchDesiredState(context, found, state);
  context.recordEvent({ kind: "stop", mission, data: { wish: state } });
  return latched;
}

/** Records the state now if that failed before: the dead agent no longer fills the disk. */
async function latchAgain(context: PitContext, record: MissionRecord, state: DesiredState): Promise<void> {
  const { mission } = record;
  const { unrecorded } = await latchDesiredState(context, record, state);
  if (unrecorded === undefined) return;
  throw new LazarusError(
    unrecorded.code,
    `${mission} was killed, but this could not be recorded: ${unrecorded.message}`,
    {
      hint: `free some space, then: lazarus stop ${mission}; until then a pit may revive it`,
      cause: unrecorded,
    },
  );
}

/** A failure is only logged: the checkpoint that counts is taken after the exit. */
async function saveBefore(context: PitContext, mission: MissionId, agent: string): Promise<string | null> {
  try {
    return (await capture(context, mission, { reason: "stop", message: null, agent })).ref.id;
  } catch (error) {
    context.log(`${mission}: no checkpoint before SIGTERM: ${messageOf(error)}`);
    return null;
  }
}

/** Undefined when the mission never had an agent. Throws when its record is damaged and no agent is running. */
function findRecord(context: PitContext, mission: MissionId): MissionRecord | undefined {
  const stray = () => recordStrayAgent(context, mission);
  const record = isRecordDamaged(context.config, mission)
    ? (stray() ?? readRecord(context.config, mission))
    : (readRecord(context.config, mission) ?? stray());
  return record?.life == null ? undefined : record;
}

/** A minimal record for a running agent whose record is gone or damaged, enough to stop it. Its start command is lost. */
function recordStrayAgent({ machine, config }: PitContext, mission: MissionId): MissionRecord | undefined {
  const [keeper] = findKeepers(config, mission);
  if (keeper === undefined && !isKeeperAlive(machine.processes, config, mission)) return undefined;
  const nowMs = machine.clock.nowMs();
  return beginLife(
    { ...createBareRecord(mission, "unknown", nowMs), revive: "no" },
    {
      epoch: (keeper && keeperEpoch(keeper)) ?? readEpoch(config, mission),
      started_ms: nowMs,
      how: "start",
      command: [],
      oom_kills: null,
      log_bytes: 0,
    },
  );
}

/** The command that starts a stopped agent again; if its record was lost, with a placeholder for the command line. */
export function startAgainCommand({ mission, command }: MissionRecord): string {
  return command.length === 0 ? `lazarus run ${mission} -- COMMAND` : `lazarus revive ${mission}`;
}

function unkillable(mission: MissionId): LazarusError {
  return new LazarusError("AGENT_IMMORTAL", `cannot kill the agent of ${mission}`, {
    hint: `lazarus status ${mission}, then inspect the process with ps`,
  });
}

export function noAgent(config: Config, mission: MissionId): LazarusError {
  if (!isKnownMission(config, mission)) return unknownMission(config, mission);
  return new LazarusError("AGENT_UNKNOWN", `${mission} has never had an agent`, {
    hint: `lazarus run ${mission} -- COMMAND`,
  });
}
