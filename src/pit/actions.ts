// What a human, a script or the API can ask of a mission's agent. The command line and HTTP call the same functions; each
// takes the mission's lock, changes the record durably, acts, tells, and rings the pit's bell.

import { existsSync } from "node:fs";
import { readEpoch } from "../cell/fence.ts";
import { initCell } from "../cell/init.ts";
import { cellPaths } from "../cell/layout.ts";
import { type MissionId, parseMissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import type { CaptureResult } from "../snapshot/capture/capture.ts";
import type { PitContext } from "./context.ts";
import { previewEnd } from "./death/collect-facts.ts";
import { capture, considerRevival, settleLife } from "./death/handle-exit.ts";
import { endProcesses, endUnlocked, findUnlocked } from "./death/kill.ts";
import { agentTree, findKeepers, signal, stopTree } from "./death/orphans.ts";
import type { Decision, Wish } from "./death/policy.ts";
import {
  beginLife,
  endLife,
  grant,
  keepScene,
  type MissionRecord,
  type Orders,
  order,
  setWish,
} from "./record/record.ts";
import { agentPlaces, readRecord, writeRecord } from "./record/store.ts";
import { type Life, lifeGoesOn, readLife } from "./start/life.ts";
import { reviveAgent } from "./start/revive.ts";
import { type Started, startAgent } from "./start/start-agent.ts";
import { ring } from "./supervise/wake-file.ts";

/** Starts an agent by a human's order. The cell is made when it is missing. */
export async function startMission(
  context: PitContext,
  orders: Orders,
  options: { readonly foreground?: boolean } = {},
): Promise<Started> {
  const { machine, config } = context;
  const mission = parseMissionId(orders.mission);
  const { made } = initCell(machine, config, mission);
  if (made.length > 0)
    context.recordEvent({
      kind: "init",
      mission,
      data: { root: cellPaths(config, mission).root, made, repo: null },
    });
  using _ = await context.lockMission(mission, `start of ${mission}`);
  // A life that ended unseen is dealt with first: its scene is kept before anything new changes it.
  const settled = await settleLife(context, mission);
  if (settled.state === "unkept") throw settled.error;
  const record = order(readRecord(config, mission), orders, machine.clock.nowMs());
  const started = await startAgent(context, record, {
    how: "start",
    command: orders.command,
    ...(options.foreground ? { foreground: true } : {}),
  });
  context.recordEvent({
    kind: "start",
    mission,
    data: { epoch: started.epoch, pid: started.life?.agent.pid ?? null, command: orders.command[0] ?? "" },
  });
  ring(machine, config, mission);
  return started;
}

export interface StopOptions {
  /** False: no checkpoint before the end. */
  readonly checkpoint?: boolean;
  readonly graceSeconds?: number | undefined;
}

export interface StopResult {
  readonly wasRunning: boolean;
  readonly checkpoint: string | null;
  /** Set when the checkpoint failed; the stop goes on all the same. */
  readonly checkpointError: string | null;
  /** SIGKILL was needed. */
  readonly killed: boolean;
  readonly record: MissionRecord;
}

/** A human's stop: a latch. Checkpoint, SIGTERM, a grace, SIGKILL. */
export function stopMission(
  context: PitContext,
  mission: MissionId,
  options: StopOptions = {},
): Promise<StopResult> {
  return endMission(context, mission, "stopped", options);
}

/** An agent that is asked to end in its own time gets so long for it. */
export const REST_SECONDS = 60;

/** A graceful end; comes back with `revive`. */
export function restMission(
  context: PitContext,
  mission: MissionId,
  { graceSeconds = REST_SECONDS }: StopOptions = {},
): Promise<StopResult> {
  return endMission(context, mission, "resting", { checkpoint: false, graceSeconds });
}

async function endMission(
  context: PitContext,
  mission: MissionId,
  wish: Extract<Wish, "stopped" | "resting">,
  options: StopOptions,
): Promise<StopResult> {
  const { machine, config } = context;
  using _ = await context.lockMission(mission, `${wish === "stopped" ? "stop" : "rest"} of ${mission}`);
  let record = readRecord(config, mission) ?? strayRecord(context, mission);
  if (record?.life == null) throw unknownAgent(mission);
  // The latch first: whatever fails below, nothing is revived against a human's word.
  record = setWish(record, wish, machine.clock.nowMs());
  writeRecord(machine, config, record);
  context.recordEvent({ kind: "stop", mission, data: { wish } });
  const unlocked = lifeGoesOn(machine.processes, config, mission) ? [] : findUnlocked(context, mission);
  const running = unlocked.length > 0 || lifeGoesOn(machine.processes, config, mission);
  let checkpoint: string | null = null;
  let checkpointError: string | null = null;
  let killed = false;
  if (running) {
    if (options.checkpoint !== false) {
      try {
        checkpoint = (await capture(context, mission, "stop", null, record.agent)).ref.id;
        record = keepScene(record, { epoch: record.life!.epoch, checkpoint, error: null });
        writeRecord(machine, config, record);
      } catch (error) {
        checkpointError = error instanceof Error ? error.message : String(error);
      }
    }
    const settings = context.settings(mission, record.agent);
    const graceMs = (options.graceSeconds ?? settings.graceSeconds) * 1000;
    killed = await endProcesses(context, mission, graceMs);
    if (unlocked.length > 0) await endUnlocked(context, mission, graceMs);
  }
  const settled = await settleLife(context, mission);
  if (settled.state === "alive") throw immortal(mission);
  ring(machine, config, mission);
  if (settled.state === "settled") {
    record = settled.record;
    checkpoint ??= running ? (record.scene?.checkpoint ?? null) : null;
  }
  return { wasRunning: running, checkpoint, checkpointError, killed, record };
}

/** Stops every process of the agent where it is; a latch. It goes on with `revive`. */
export async function pauseMission(context: PitContext, mission: MissionId): Promise<{ processes: number }> {
  const { machine, config } = context;
  using _ = await context.lockMission(mission, `pause of ${mission}`);
  const record = requireRecord(context, mission);
  const life = requireLife(context, mission);
  writeRecord(machine, config, setWish(record, "paused", machine.clock.nowMs()));
  const processes = await stopTree(machine.clock, life);
  context.recordEvent({ kind: "stop", mission, data: { wish: "paused", processes } });
  ring(machine, config, mission);
  return { processes };
}

export type ReviveResult =
  | { readonly outcome: "continued"; readonly processes: number }
  | { readonly outcome: "running" }
  | { readonly outcome: "would-start"; readonly decision: Decision; readonly record: MissionRecord }
  | { readonly outcome: "started"; readonly started: Started; readonly stepBackTo: string | null };

export interface ReviveOptions {
  readonly dryRun?: boolean;
}

/** A human says: bring it back. Answers an ask, lifts latch and tombstone, cuts a wait short. */
export async function reviveMission(
  context: PitContext,
  mission: MissionId,
  options: ReviveOptions = {},
): Promise<ReviveResult> {
  const { machine, config } = context;
  using _ = await context.lockMission(mission, `revival of ${mission}`);
  const record = requireRecord(context, mission);
  if (lifeGoesOn(machine.processes, config, mission)) {
    if (record.wish !== "paused" || options.dryRun) return { outcome: "running" };
    writeRecord(machine, config, setWish(record, "running", machine.clock.nowMs()));
    const tree = agentTree(requireLife(context, mission));
    for (const pid of tree) signal(pid, "SIGCONT");
    context.recordEvent({ kind: "revival", mission, data: { how: "continued", processes: tree.length } });
    ring(machine, config, mission);
    return { outcome: "continued", processes: tree.length };
  }
  if (options.dryRun) {
    const unseen = await previewEnd(context, record);
    const { limits } = context.settings(mission, record.agent);
    const known = unseen === undefined ? record : endLife(record, unseen, limits);
    return { outcome: "would-start", decision: considerRevival(context, mission, known), record: known };
  }
  const settled = await settleLife(context, mission);
  if (settled.state === "unkept") throw settled.error;
  const now = readRecord(config, mission)!;
  if (!existsSync(cellPaths(config, mission).root)) {
    throw new LazarusError("MISSION_UNKNOWN", `the cell of ${mission} is gone`, {
      hint: `lazarus restore ${mission}, then: lazarus revive ${mission}`,
    });
  }
  if (now.command.length === 0) {
    throw new LazarusError("AGENT_UNKNOWN", `nobody knows any more how the agent of ${mission} is started`, {
      hint: `lazarus run ${mission} -- COMMAND`,
    });
  }
  const granted = grant(now, machine.clock.nowMs());
  writeRecord(machine, config, granted);
  const started = await reviveAgent(context, mission, granted, {
    how: "revival",
    stepBackTo: null,
    reason: "a human said revive",
  });
  ring(machine, config, mission);
  return { outcome: "started", started, stepBackTo: null };
}

/** A checkpoint by order. */
export async function checkpointMission(
  context: PitContext,
  mission: MissionId,
  message: string | null = null,
): Promise<CaptureResult> {
  return capture(context, mission, "manual", message, readRecord(context.config, mission)?.agent ?? null);
}

export function requireRecord(context: PitContext, mission: MissionId): MissionRecord {
  const record = readRecord(context.config, mission);
  if (record !== undefined && record.life !== null) return record;
  throw unknownAgent(mission);
}

function unknownAgent(mission: MissionId): LazarusError {
  return new LazarusError("AGENT_UNKNOWN", `${mission} never had an agent`, {
    hint: `lazarus run ${mission} -- COMMAND`,
  });
}

/** For an agent that lives while its record is gone: enough to end it. How it was started nobody knows any more. */
function strayRecord({ machine, config }: PitContext, mission: MissionId): MissionRecord | undefined {
  const [keeper] = findKeepers(agentPlaces(config, mission).directory);
  if (keeper === undefined && !lifeGoesOn(machine.processes, config, mission)) return undefined;
  const nowMs = machine.clock.nowMs();
  const orders: Orders = {
    mission,
    agent: "unknown",
    command: [],
    cwd: null,
    env: {},
    revive: "no",
    substitute: null,
    stall_seconds: null,
  };
  return beginLife(order(undefined, orders, nowMs), {
    epoch: keeper?.epoch ?? readEpoch(config, mission),
    started_ms: nowMs,
    how: "start",
    command: [],
    oom_kills: null,
    log_bytes: 0,
  });
}

export function requireLife(context: PitContext, mission: MissionId): Life {
  const life = readLife(context.config, mission);
  if (life !== undefined && lifeGoesOn(context.machine.processes, context.config, mission)) return life;
  throw new LazarusError("AGENT_NOT_RUNNING", `no agent of ${mission} is running`, {
    hint: `lazarus status ${mission}`,
  });
}

function immortal(mission: MissionId): LazarusError {
  return new LazarusError("AGENT_IMMORTAL", `the agent of ${mission} cannot be ended`, {
    hint: `lazarus status ${mission}, and look at it with ps`,
  });
}
