// What the pit does for one mission: adopts a running agent, handles an exit, revives the agent if that was decided, kills a
// stalled agent. All state is on disk, so a pit that was killed at any line continues here.

import { isKeeperAlive, readLife } from "../../cell/life.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { Lock } from "../../platform/lock.ts";
import type { PitContext } from "../context.ts";
import { type ExitResult, handleExit } from "../death/handle-exit.ts";
import { killAgent } from "../death/kill.ts";
import { isAhead, isInForeground } from "../record/pending.ts";
import { type MissionRecord, markStalled, nextStep } from "../record/record.ts";
import { readRecord, writeRecord } from "../record/store.ts";
import { reviveAsDecided } from "../start/revive.ts";
import type { WatchList } from "./watch-list.ts";

/** A keeper that is starting has written life.json by then. */
const STARTING_MS = 200;
/** How soon a pit notices that a foreground command is gone. */
const FOREGROUND_MS = 1000;

export interface CheckOptions {
  readonly watchList: WatchList;
  readonly takeCheckpoint: PitContext["takeCheckpoint"];
  /** When the host last woke from sleep. */
  readonly sleptUntilMs: number | undefined;
  /** A pit that is shutting down starts nothing. */
  isStopping(): boolean;
}

/** Returns when to check the mission again (wall clock); undefined: when something changes. */
export async function checkMission(
  context: PitContext,
  mission: MissionId,
  options: CheckOptions,
): Promise<number | undefined> {
  const { machine, config } = context;
  const { clock } = machine;
  const record = readRecord(config, mission);
  if (record?.life != null && isKeeperAlive(machine.processes, config, mission))
    return adopt(context, mission, record.life.epoch, options.watchList);
  options.watchList.remove(mission);
  if (record === undefined || nextStep(record) === "none") return undefined;
  // Its own command handles the exit, and revives it in its terminal.
  if (isInForeground(machine.processes, record)) return clock.nowMs() + FOREGROUND_MS;
  // Not due yet: no need for the lock.
  if (nextStep(record) === "wait" && isAhead(record, clock.nowMs())) return record.decision!.at_ms!;
  using lock = await context.lockMission(mission, `pit: end of ${mission}`);
  const current = readRecord(config, mission);
  if (isInForeground(machine.processes, current)) return clock.nowMs() + FOREGROUND_MS;
  const { sleptUntilMs, takeCheckpoint } = options;
  const exit = await handleExit(context, current, { sleptUntilMs, takeCheckpoint });
  if (exit.state === "none") return undefined;
  if (exit.state === "alive") return clock.nowMs();
  if (exit.state === "checkpoint-failed") throw exit.error;
  return await execute(context, exit, lock, options);
}

/** Executes a decision that is due. */
async function execute(
  context: PitContext,
  { record, decision }: Extract<ExitResult, { state: "handled" }>,
  heldLock: Lock,
  { watchList, isStopping }: CheckOptions,
): Promise<number | undefined> {
  const { clock } = context.machine;
  const mission = record.mission as MissionId;
  const acts = decision.at_ms !== null && record.wish === "running" && !isStopping();
  if (!acts || decision.at_ms > clock.nowMs()) {
    context.log(`${mission}: ${decision.action}: ${decision.reason}`);
    return acts ? decision.at_ms : undefined;
  }
  const started = await reviveAsDecided(context, { record, decision }, heldLock);
  context.log(`${mission}: started life ${started.epoch}: ${decision.reason}`);
  return started.life === undefined ? clock.nowMs() : adopt(context, mission, started.epoch, watchList);
}

function adopt(
  { machine, config }: PitContext,
  mission: MissionId,
  epoch: number,
  watchList: WatchList,
): number | undefined {
  const life = readLife(config, mission);
  const adopted =
    life !== undefined && life.epoch >= epoch && watchList.add(mission, life, machine.clock.monotonicMs());
  return adopted ? undefined : machine.clock.nowMs() + STARTING_MS;
}

/** The reason is recorded before the kill, so that the end is not taken for a crash. Waits without the lock. */
export async function killStalled(context: PitContext, mission: MissionId, reason: string): Promise<void> {
  const stalled = await recordStall(context, mission, reason);
  if (stalled === undefined) return;
  context.log(`${mission}: killing stalled agent: ${reason}`);
  await killAgent(context, stalled, context.settings(stalled).graceSeconds * 1000);
}

/** Undefined when the agent has ended or is being stopped. */
async function recordStall(
  context: PitContext,
  mission: MissionId,
  reason: string,
): Promise<MissionRecord | undefined> {
  const { machine, config } = context;
  using _ = await context.lockMission(mission, `pit: stall of ${mission}`);
  const record = readRecord(config, mission);
  if (record?.wish !== "running" || !isKeeperAlive(machine.processes, config, mission)) return undefined;
  const stalled = markStalled(record, machine.clock.nowMs(), reason);
  writeRecord(machine, config, stalled);
  return stalled;
}
