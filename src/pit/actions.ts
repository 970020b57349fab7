// What a human, a script or the API can ask of a mission's agent. The command line and HTTP call the same functions; each
// takes the mission's lock, changes the record durably, acts, tells, and rings the pit's bell.

import { existsSync } from "node:fs";
import { readEpoch } from "../cell/fence.ts";
import { initCell } from "../cell/init.ts";
import { cellPaths } from "../cell/layout.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import type { CaptureResult } from "../snapshot/capture/capture.ts";
import type { Hands } from "./context.ts";
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
  hands: Hands,
  orders: Orders,
  options: { readonly foreground?: boolean } = {},
): Promise<Started> {
  const { machine, config } = hands;
  const mission = hands.missionOf(orders.mission);
  const { made } = initCell(machine, config, mission);
  if (made.length > 0)
    hands.tell({ kind: "init", mission, data: { root: cellPaths(config, mission).root, made, repo: null } });
  using _ = await hands.lock(mission, `start of ${mission}`);
  // A life that ended unseen is dealt with first: its scene is kept before anything new changes it.
  const settled = await settleLife(hands, mission);
  if (settled.state === "unkept") throw settled.error;
  const record = order(readRecord(config, mission), orders, machine.clock.nowMs());
  const started = await startAgent(hands, record, {
    how: "start",
    command: orders.command,
    ...(options.foreground ? { foreground: true } : {}),
  });
  hands.tell({
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
  hands: Hands,
  mission: MissionId,
  options: StopOptions = {},
): Promise<StopResult> {
  return endMission(hands, mission, "stopped", options);
}

/** An agent that is asked to end in its own time gets so long for it. */
export const REST_SECONDS = 60;

/** A graceful end; comes back with `revive`. */
export function restMission(
  hands: Hands,
  mission: MissionId,
  { graceSeconds = REST_SECONDS }: StopOptions = {},
): Promise<StopResult> {
  return endMission(hands, mission, "resting", { checkpoint: false, graceSeconds });
}

async function endMission(
  hands: Hands,
  mission: MissionId,
  wish: Extract<Wish, "stopped" | "resting">,
  options: StopOptions,
): Promise<StopResult> {
  const { machine, config } = hands;
  using _ = await hands.lock(mission, `${wish === "stopped" ? "stop" : "rest"} of ${mission}`);
  let record = readRecord(config, mission) ?? strayRecord(hands, mission);
  if (record?.life == null) throw unknownAgent(mission);
  // The latch first: whatever fails below, nothing is revived against a human's word.
  record = setWish(record, wish, machine.clock.nowMs());
  writeRecord(machine, config, record);
  hands.tell({ kind: "stop", mission, data: { wish } });
  const unlocked = lifeGoesOn(machine.processes, config, mission) ? [] : findUnlocked(hands, mission);
  const running = unlocked.length > 0 || lifeGoesOn(machine.processes, config, mission);
  let checkpoint: string | null = null;
  let checkpointError: string | null = null;
  let killed = false;
  if (running) {
    if (options.checkpoint !== false) {
      try {
        checkpoint = (await capture(hands, mission, "stop", null, record.agent)).ref.id;
        record = keepScene(record, { epoch: record.life!.epoch, checkpoint, error: null });
        writeRecord(machine, config, record);
      } catch (error) {
        checkpointError = error instanceof Error ? error.message : String(error);
      }
    }
    const settings = hands.settings(mission, record.agent);
    const graceMs = (options.graceSeconds ?? settings.graceSeconds) * 1000;
    killed = await endProcesses(hands, mission, graceMs);
    if (unlocked.length > 0) await endUnlocked(hands, mission, graceMs);
  }
  const settled = await settleLife(hands, mission);
  if (settled.state === "alive") throw immortal(mission);
  ring(machine, config, mission);
  if (settled.state === "settled") {
    record = settled.record;
    checkpoint ??= running ? (record.scene?.checkpoint ?? null) : null;
  }
  return { wasRunning: running, checkpoint, checkpointError, killed, record };
}

/** Stops every process of the agent where it is; a latch. It goes on with `revive`. */
export async function pauseMission(hands: Hands, mission: MissionId): Promise<{ processes: number }> {
  const { machine, config } = hands;
  using _ = await hands.lock(mission, `pause of ${mission}`);
  const record = requireRecord(hands, mission);
  const life = requireLife(hands, mission);
  writeRecord(machine, config, setWish(record, "paused", machine.clock.nowMs()));
  const processes = await stopTree(machine.clock, life);
  hands.tell({ kind: "stop", mission, data: { wish: "paused", processes } });
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
  hands: Hands,
  mission: MissionId,
  options: ReviveOptions = {},
): Promise<ReviveResult> {
  const { machine, config } = hands;
  using _ = await hands.lock(mission, `revival of ${mission}`);
  const record = requireRecord(hands, mission);
  if (lifeGoesOn(machine.processes, config, mission)) {
    if (record.wish !== "paused" || options.dryRun) return { outcome: "running" };
    writeRecord(machine, config, setWish(record, "running", machine.clock.nowMs()));
    const tree = agentTree(requireLife(hands, mission));
    for (const pid of tree) signal(pid, "SIGCONT");
    hands.tell({ kind: "revival", mission, data: { how: "continued", processes: tree.length } });
    ring(machine, config, mission);
    return { outcome: "continued", processes: tree.length };
  }
  if (options.dryRun) {
    const unseen = await previewEnd(hands, record);
    const { limits } = hands.settings(mission, record.agent);
    const known = unseen === undefined ? record : endLife(record, unseen, limits);
    return { outcome: "would-start", decision: considerRevival(hands, mission, known), record: known };
  }
  const settled = await settleLife(hands, mission);
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
  const started = await reviveAgent(hands, mission, granted, {
    how: "revival",
    stepBackTo: null,
    reason: "a human said revive",
  });
  ring(machine, config, mission);
  return { outcome: "started", started, stepBackTo: null };
}

/** A checkpoint by order. */
export async function checkpointMission(
  hands: Hands,
  mission: MissionId,
  message: string | null = null,
): Promise<CaptureResult> {
  return capture(hands, mission, "manual", message, readRecord(hands.config, mission)?.agent ?? null);
}

export function requireRecord(hands: Hands, mission: MissionId): MissionRecord {
  const record = readRecord(hands.config, mission);
  if (record !== undefined && record.life !== null) return record;
  throw unknownAgent(mission);
}

function unknownAgent(mission: MissionId): LazarusError {
  return new LazarusError("AGENT_UNKNOWN", `${mission} never had an agent`, {
    hint: `lazarus run ${mission} -- COMMAND`,
  });
}

/** For an agent that lives while its record is gone: enough to end it. How it was started nobody knows any more. */
function strayRecord({ machine, config }: Hands, mission: MissionId): MissionRecord | undefined {
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

export function requireLife(hands: Hands, mission: MissionId): Life {
  const life = readLife(hands.config, mission);
  if (life !== undefined && lifeGoesOn(hands.machine.processes, hands.config, mission)) return life;
  throw new LazarusError("AGENT_NOT_RUNNING", `no agent of ${mission} is running`, {
    hint: `lazarus status ${mission}`,
  });
}

function immortal(mission: MissionId): LazarusError {
  return new LazarusError("AGENT_IMMORTAL", `the agent of ${mission} cannot be ended`, {
    hint: `lazarus status ${mission}, and look at it with ps`,
  });
}
