// Kills the processes of a running life: SIGTERM to the agent, a grace period, SIGKILL, and the keeper itself only when it
// hangs. By recorded process identity, or by membership in the life where that was lost; never by pid alone.
import { readEpoch } from "../../cell/fence.ts";
import { findKeepers, isKeeperAlive, isKeeperStopped } from "../../cell/life.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PitContext, ReadContext } from "../context.ts";
import { findMembers, identifyLife, type LifeIdentity } from "../processes/members.ts";
import { sendSignal } from "../processes/process-table.ts";
import type { MissionRecord } from "../record/record.ts";
import { keeperEpoch } from "../start/keeper-arguments.ts";
import { killOrphans } from "./orphans.ts";

const POLL_MS = 20;
/** What a keeper needs, beyond the agent's grace, to kill what the agent left behind. */
const KEEPER_WAIT_MS = 5000;

/** Returns whether SIGKILL was needed. Needs no lock: it kills only the life that the record names. */
export async function killAgent(
  context: PitContext,
  record: MissionRecord,
  graceMs: number,
): Promise<boolean> {
  const { machine, config } = context;
  const { clock } = machine;
  const { mission } = record;
  const epoch = record.life?.epoch ?? 0;
  const isOurs = (pid: number) => (keeperEpoch(pid) ?? epoch) <= epoch;
  // A higher epoch: this life has ended, and the next one must not be killed. An agent can forge that file, but not the
  // arguments of its keeper.
  const isAlive = () =>
    isKeeperAlive(machine.processes, config, mission) &&
    (readEpoch(config, mission) <= epoch || findKeepers(config, mission).some(isOurs));
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
  agentPids(context, identifyLife(context, record)).forEach(kill);
  const { leftoverGraceSeconds } = context.settings(record);
  await waitWhile(clock, isAlive, leftoverGraceSeconds * 1000 + KEEPER_WAIT_MS);
  if (isAlive()) {
    // The keeper hangs, is stopped, or never wrote life.json.
    const identity = identifyLife(context, record);
    findKeepers(config, mission).filter(isOurs).forEach(kill);
    // The kernel takes a moment to end a process. What the keeper leaves counts as orphaned only once the keeper is gone.
    await waitWhile(clock, isAlive, KEEPER_WAIT_MS);
    await killOrphans(clock, identity, 0);
  }
  return killed;
}

async function waitWhile(clock: Clock, condition: () => boolean, maxMs: number): Promise<void> {
  const deadlineMs = clock.monotonicMs() + maxMs;
  while (condition() && clock.monotonicMs() < deadlineMs) await clock.sleep(POLL_MS);
}

/** Returns false when there is no process yet to send SIGTERM to. */
function terminate(context: PitContext, record: MissionRecord): boolean {
  const identity = identifyLife(context, record);
  const pids = agentPids(context, identity);
  for (const pid of pids) sendSignal(pid, "SIGTERM");
  // A paused agent handles the signal only when it continues; so does a stopped keeper.
  const { keeper } = identity;
  if (keeper !== undefined && isKeeperStopped(keeper)) sendSignal(keeper.pid, "SIGCONT");
  for (const { pid } of findMembers(identity)) sendSignal(pid, "SIGCONT");
  return pids.length > 0;
}

/** The agent by its recorded identity; where that was lost, every process that belongs to the life. */
function agentPids({ machine }: ReadContext, identity: LifeIdentity): number[] {
  const agent = identity.life?.agent;
  if (agent === undefined) return findMembers(identity).map(({ pid }) => pid);
  return machine.processes.identify(agent.pid)?.startTime === agent.startTime ? [agent.pid] : [];
}
