// Kills the processes of a running life: SIGTERM to the agent, a grace period, SIGKILL, and the keeper itself only when it
// hangs. By recorded process identity, or by the life's session and environment where that was lost; never by pid alone.
import { existsSync } from "node:fs";
import { agentPaths } from "../../cell/agent-paths.ts";
import { cellPaths } from "../../cell/layout.ts";
import { isKeeperAlive, readLife } from "../../cell/life.ts";
import { type MissionId, parseMissionId } from "../../cell/mission-id.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PitContext, ReadContext } from "../context.ts";
import { agentTree, findKeepers, type KeeperProcess, sendSignal } from "../processes/process-table.ts";
import type { MissionRecord } from "../record/record.ts";
import { findOrphans, killOrphans, type LifeIdentity } from "./orphans.ts";

const POLL_MS = 20;
/** What a keeper needs, beyond the agent's grace, to kill what the agent left behind. */
const KEEPER_WAIT_MS = 5000;

/** Returns whether SIGKILL was needed. */
export async function killAgent(
  context: PitContext,
  record: MissionRecord,
  graceMs: number,
): Promise<boolean> {
  const { machine, config } = context;
  const { clock } = machine;
  const { mission } = record;
  const isAlive = () => isKeeperAlive(machine.processes, config, mission);
  const startMs = clock.monotonicMs();
  let asked = false;
  while (isAlive() && clock.monotonicMs() - startMs < graceMs) {
    if (!asked) asked = terminate(context, record);
    await clock.sleep(POLL_MS);
  }
  if (!isAlive()) return false;
  // Stays false when the agent exited in time and its keeper is still killing what it left behind.
  let killed = false;
  const kill = (pid: number) => {
    if (sendSignal(pid, "SIGKILL")) killed = true;
  };
  agentPids(context, identify(context, record)).forEach(kill);
  const { leftoverGraceSeconds } = context.settings(record);
  await waitWhile(clock, isAlive, leftoverGraceSeconds * 1000 + KEEPER_WAIT_MS);
  if (isAlive()) {
    // The keeper hangs, is stopped, or never wrote life.json.
    const identity = identify(context, record);
    for (const { pid } of findKeepers(agentPaths(config, mission).directory)) kill(pid);
    await killOrphans(clock, identity, 0);
    // The kernel releases the lock with some delay.
    await waitWhile(clock, isAlive, KEEPER_WAIT_MS);
  }
  return killed;
}

async function waitWhile(clock: Clock, condition: () => boolean, maxMs: number): Promise<void> {
  const deadlineMs = clock.monotonicMs() + maxMs;
  while (condition() && clock.monotonicMs() < deadlineMs) await clock.sleep(POLL_MS);
}

/** Returns false when there is no process yet to send SIGTERM to. */
function terminate(context: PitContext, record: MissionRecord): boolean {
  const identity = identify(context, record);
  const pids = agentPids(context, identity);
  for (const pid of pids) sendSignal(pid, "SIGTERM");
  // A paused agent handles the signal only when it continues.
  if (identity.life !== undefined) for (const pid of agentTree(identity.life)) sendSignal(pid, "SIGCONT");
  return pids.length > 0;
}

function identify(
  { machine, config }: ReadContext,
  { mission, life: recorded }: MissionRecord,
): LifeIdentity {
  const life = readLife(config, mission);
  const epoch = recorded?.epoch ?? life?.epoch ?? 0;
  return {
    cell: cellPaths(config, parseMissionId(mission)).root,
    epoch,
    life: life?.epoch === epoch ? life : undefined,
    bootId: machine.processes.bootId(),
  };
}

/** The agent by its recorded identity; where that was lost, every process that belongs to the life. */
function agentPids({ machine }: ReadContext, identity: LifeIdentity): number[] {
  const agent = identity.life?.agent;
  if (agent === undefined) return findOrphans(identity).map(({ pid }) => pid);
  return machine.processes.identify(agent.pid)?.startTime === agent.startTime ? [agent.pid] : [];
}

/** Keepers whose lock file was deleted: they still hold the lock, but nothing can test it. */
export function findUnlockedKeepers({ config }: ReadContext, mission: MissionId): KeeperProcess[] {
  const { directory, lifeLock } = agentPaths(config, mission);
  return existsSync(lifeLock) ? [] : findKeepers(directory);
}

/** Kills the agent, waits for its keeper to clean up and exit, and kills a keeper that hangs. */
export async function killUnlockedAgent(
  context: PitContext,
  record: MissionRecord,
  graceMs: number,
): Promise<void> {
  const { clock } = context.machine;
  const { directory } = agentPaths(context.config, record.mission);
  const keepers = () => findKeepers(directory);
  await killOrphans(clock, identify(context, record), graceMs);
  await waitWhile(clock, () => keepers().length > 0, KEEPER_WAIT_MS);
  for (const { pid } of keepers()) sendSignal(pid, "SIGKILL");
  await waitWhile(clock, () => keepers().length > 0, KEEPER_WAIT_MS);
}
