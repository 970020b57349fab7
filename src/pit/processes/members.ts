// Which processes belong to a life (INV-4). The kernel decides, not names or paths: the life's control group, the tree
// below its keeper (a child subreaper), the keeper's session, and the life's random token in the environment; pids count
// only with their start time. The keeper of another mission, with all below it, belongs to that mission.
import { readFileSync } from "node:fs";
import type { Config } from "../../cell/config.ts";
import { findKeepers, type Life, lockedMission, readLife, readLifeOf } from "../../cell/life.ts";
import { quietly } from "../../platform/errors.ts";
import type { ProcessIdentity } from "../../platform/process-identity.ts";
import type { ReadContext } from "../context.ts";
import type { MissionRecord } from "../record/record.ts";
import { cgroupProcesses } from "./cgroup.ts";
import { listProcesses, type ProcessEntry, processTree } from "./process-table.ts";

export interface LifeIdentity {
  readonly config: Config;
  readonly mission: string;
  readonly bootId: string;
  readonly token: string | null;
  readonly cgroup: string | null;
  readonly keeper: ProcessIdentity | undefined;
  /** Undefined when the keeper has not written life.json, or when the file is lost. */
  readonly life: Life | undefined;
}

/** The life that the record names. */
export function identifyLife({ machine, config }: ReadContext, record: MissionRecord): LifeIdentity {
  const { mission, life: recorded } = record;
  const life = recorded === null ? readLife(config, mission) : readLifeOf(config, mission, recorded.epoch);
  const [stray] = life === undefined ? findKeepers(config, mission) : [];
  return {
    config,
    mission,
    bootId: machine.processes.bootId(),
    keeper: life?.keeper ?? (stray === undefined ? undefined : machine.processes.identify(stray)),
    token: recorded?.token ?? life?.token ?? null,
    cgroup: recorded?.cgroup ?? null,
    life,
  };
}

/** What the kernel says about processes. */
export interface KernelView {
  readonly table: readonly ProcessEntry[];
  hasToken(pid: number, token: string): boolean;
  groupMembers(cgroup: string): readonly number[];
  /** The mission whose life lock this process holds. */
  lockedMission(pid: number): string | undefined;
}

export function readKernel(config: Config): KernelView {
  return {
    table: listProcesses(),
    hasToken,
    groupMembers: cgroupProcesses,
    lockedMission: (pid) => lockedMission(config, pid),
  };
}

/** The agent and everything it started; once the keeper is dead, its helper too, which must not write anything more. */
export function findMembers(
  identity: LifeIdentity,
  kernel: KernelView = readKernel(identity.config),
): ProcessEntry[] {
  const table = kernel.table.filter(({ state }) => !"ZX".includes(state));
  if (identity.keeper !== undefined && identity.keeper.bootId !== identity.bootId) return [];
  const { life } = identity;
  const find = (process: ProcessIdentity | undefined) =>
    table.find(({ pid, startTime }) => pid === process?.pid && startTime === process.startTime);
  const keeper = find(identity.keeper);
  const helper = find(life?.helper);
  const roots = findRoots(identity, { ...kernel, table });
  if (helper !== undefined) roots.push(helper.pid);
  const below = new Set(roots.flatMap((pid) => (pid === process.pid ? [] : processTree(pid, table))));
  const excluded = new Set([process.pid]);
  if (keeper !== undefined) excluded.add(keeper.pid);
  if (keeper !== undefined && helper !== undefined)
    for (const pid of processTree(helper.pid, table)) excluded.add(pid);
  for (const pid of below)
    if (!excluded.has(pid) && isForeignKeeper(identity, kernel, pid))
      for (const each of processTree(pid, table)) excluded.add(each);
  return table.filter(({ pid }) => below.has(pid) && !excluded.has(pid));
}

function findRoots({ token, cgroup, keeper, life }: LifeIdentity, kernel: KernelView): number[] {
  const isReused = (process: ProcessIdentity) =>
    kernel.table.some(({ pid, startTime }) => pid === process.pid && startTime !== process.startTime);
  // The kernel does not reuse a pid while a session is named after it; if the pid was reused, so was the session. An
  // agent with a terminal has its own session.
  const leaders = [life?.detached ? life.keeper : undefined, life?.agent];
  const sessions = leaders.flatMap((leader) =>
    leader === undefined || isReused(leader) ? [] : [leader.pid],
  );
  const parent = keeper === undefined || isReused(keeper) ? undefined : keeper.pid;
  const group = new Set(cgroup === null ? [] : kernel.groupMembers(cgroup));
  const isRoot = (entry: ProcessEntry) =>
    (entry.pid === life?.agent.pid && entry.startTime === life.agent.startTime) ||
    (sessions.includes(entry.session) && entry.pid !== life?.keeper.pid) ||
    entry.parent === parent ||
    group.has(entry.pid) ||
    (token !== null && kernel.hasToken(entry.pid, token));
  return kernel.table.filter(isRoot).map(({ pid }) => pid);
}

/** Holds the life lock of another mission, and that mission's life.json names exactly this process. */
function isForeignKeeper({ config, mission }: LifeIdentity, kernel: KernelView, pid: number): boolean {
  const other = kernel.lockedMission(pid);
  if (other === undefined || other === mission) return false;
  const named = readLife(config, other)?.keeper;
  return (
    named?.pid === pid && kernel.table.some((each) => each.pid === pid && each.startTime === named.startTime)
  );
}

/** Variables of other users' processes are unreadable; those are never part of a life. */
function hasToken(pid: number, token: string): boolean {
  const text = quietly(() => readFileSync(`/proc/${pid}/environ`, "utf8")) ?? "";
  return `\0${text}`.includes(`\0LAZARUS_LIFE=${token}\0`);
}
