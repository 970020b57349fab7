// Ends the processes of a life from outside: TERM to the agent, a grace, KILL, and the keeper itself only when it hangs.
// By recorded identity where there is one, by the marks of the life where that was lost; never by a pid alone.
import { existsSync } from "node:fs";
import { cellPaths } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { Clock } from "../../platform/clock.ts";
import type { PitContext } from "../context.ts";
import { agentPlaces, readRecord } from "../record/store.ts";
import { lifeGoesOn, readLife } from "../start/life.ts";
import {
  agentTree,
  endSurvivors,
  findKeepers,
  findSurvivors,
  type KeeperSighting,
  type LifeMarks,
  signal,
} from "./orphans.ts";

const LOOK_MS = 20;
/** What a keeper needs beyond the agent's grace to end what the agent left behind. */
const KEEPER_WAIT_MS = 5000;

/** Ends a life: TERM to the agent, a grace, KILL to all of it. Returns whether KILL was sent to anyone. */
export async function endProcesses(
  context: PitContext,
  mission: MissionId,
  graceMs: number,
): Promise<boolean> {
  const { machine, config } = context;
  const { clock } = machine;
  const goesOn = () => lifeGoesOn(machine.processes, config, mission);
  const begunMs = clock.monotonicMs();
  let asked = false;
  while (goesOn() && clock.monotonicMs() - begunMs < graceMs) {
    if (!asked) asked = askToEnd(context, mission);
    await clock.sleep(LOOK_MS);
  }
  if (!goesOn()) return false;
  // None when the agent has ended in time and its keeper is still busy with what it left.
  let killed = false;
  const kill = (pid: number) => {
    if (signal(pid, "SIGKILL")) killed = true;
  };
  agentPids(context, marksOf(context, mission)).forEach(kill);
  const { leftoverGraceSeconds } = context.settings(mission, readRecord(config, mission)?.agent);
  await waitWhile(clock, goesOn, leftoverGraceSeconds * 1000 + KEEPER_WAIT_MS);
  if (goesOn()) {
    // A keeper that hangs, was stopped by someone, or never said who it is: its life is ended from outside.
    const marks = marksOf(context, mission);
    for (const { pid } of findKeepers(agentPlaces(config, mission).directory)) kill(pid);
    await endSurvivors(clock, marks, 0);
    // The kernel lets go of its lock when it gets round to it.
    await waitWhile(clock, goesOn, KEEPER_WAIT_MS);
  }
  return killed;
}

async function waitWhile(clock: Clock, holds: () => boolean, mostMs: number): Promise<void> {
  const deadlineMs = clock.monotonicMs() + mostMs;
  while (holds() && clock.monotonicMs() < deadlineMs) await clock.sleep(LOOK_MS);
}

/** Returns whether there was anyone to hear it. */
function askToEnd(context: PitContext, mission: MissionId): boolean {
  const marks = marksOf(context, mission);
  const pids = agentPids(context, marks);
  for (const pid of pids) signal(pid, "SIGTERM");
  // A paused agent hears it only when it goes on.
  if (marks.life !== undefined) for (const pid of agentTree(marks.life)) signal(pid, "SIGCONT");
  return pids.length > 0;
}

/** By what the processes of the present life are known. */
function marksOf({ machine, config }: PitContext, mission: MissionId): LifeMarks {
  const life = readLife(config, mission);
  const epoch = readRecord(config, mission)?.life?.epoch ?? life?.epoch ?? 0;
  return {
    cell: cellPaths(config, mission).root,
    epoch,
    life: life?.epoch === epoch ? life : undefined,
    bootId: machine.processes.bootId(),
  };
}

/** The agent by its recorded identity; where that was lost, everyone who carries the marks of this life. */
function agentPids({ machine }: PitContext, marks: LifeMarks): number[] {
  const agent = marks.life?.agent;
  if (agent === undefined) return findSurvivors(marks).map(({ pid }) => pid);
  return machine.processes.identify(agent.pid)?.startTime === agent.startTime ? [agent.pid] : [];
}

/** Keepers whose lock someone removed: nobody can see any more that they hold it. */
export function findUnlocked({ config }: PitContext, mission: MissionId): KeeperSighting[] {
  const { directory, lifeLock } = agentPlaces(config, mission);
  return existsSync(lifeLock) ? [] : findKeepers(directory);
}

/** The agent, then what it left, which its keeper ends before it ends itself; a keeper that hangs is ended, too. */
export async function endUnlocked(context: PitContext, mission: MissionId, graceMs: number): Promise<void> {
  const { clock } = context.machine;
  const { directory } = agentPlaces(context.config, mission);
  const keepers = () => findKeepers(directory);
  await endSurvivors(clock, marksOf(context, mission), graceMs);
  await waitWhile(clock, () => keepers().length > 0, KEEPER_WAIT_MS);
  for (const { pid } of keepers()) signal(pid, "SIGKILL");
  await waitWhile(clock, () => keepers().length > 0, KEEPER_WAIT_MS);
}
