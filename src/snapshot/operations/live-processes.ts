// Refuses a restore in place while a process works in the cell (INV-4): what it has open would be replaced under it, and it
// would keep writing to files that no longer have a name. Evidence comes from the kernel and from leases, not from
// heartbeats, which stay fresh for a while after an agent has ended.
import { lstatSync } from "node:fs";
import { describeForeignAgent, findForeignAgent } from "../../cell/foreign-agents.ts";
import { isKeeperAlive, readLife } from "../../cell/life.ts";
import { LazarusError } from "../../platform/errors.ts";
import { CELL_RUNS } from "../../run/store/open.ts";
import { findHeldRun } from "../../run/store/positions.ts";
import type { MissionContext } from "../mission-context.ts";
import { diskPath, outsidePaths, WORKTREE } from "../model/cell-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import type { RestorePlan } from "../restore/plan.ts";
import type { Scope } from "../restore/scope.ts";
import { fileIdentity, findFilesOpenForWriting } from "../scan/open-files.ts";

/** The caller holds the mission's lock. */
export function refuseLiveAgent(
  { machine, config, mission }: MissionContext,
  kind: "restore" | "undo" | "setup",
): void {
  if (!isKeeperAlive(machine.processes, config, mission)) return;
  const pid = readLife(config, mission)?.agent.pid;
  throw new LazarusError(
    "AGENT_RUNNING",
    `an agent of ${mission} is running${pid === undefined ? "" : ` (process ${pid})`}; its cell was not changed`,
    {
      hint:
        kind === "setup"
          ? `lazarus stop ${mission}, then run the same command again`
          : `the same command with --stop, which stops it first and revives it afterwards; lazarus restore ${mission} --to DIR leaves the cell alone`,
      details: { mission, pid: pid ?? null },
    },
  );
}

/** An agent of another home that works in the same directory. */
export function refuseForeignAgent({ tree, cellRoot, mission }: MissionContext, scope: Scope): void {
  if (tree === cellRoot || !scope.has(WORKTREE)) return;
  const worktree = diskPath(tree, WORKTREE);
  const agent = findForeignAgent(worktree, cellRoot);
  if (agent === undefined) return;
  throw new LazarusError(
    "CELL_IN_USE",
    `an agent of ${describeForeignAgent(agent)} works in ${worktree}, so nothing of ${mission} was restored`,
    {
      hint: `stop it there, then run the same command again; lazarus restore ${mission} --to DIR leaves the directory alone`,
      details: { pid: agent.pid, cell: agent.cell },
    },
  );
}

/** A run in a process without a keeper, as in a program that uses the library. */
export function refuseLiveRuns({ machine, cellRoot, mission }: MissionContext, scope: Scope): void {
  if (!scope.has(CELL_RUNS)) return;
  const run = findHeldRun(cellRoot, machine.processes, machine.clock.nowMs());
  if (run === undefined) return;
  throw new LazarusError(
    "RUN_BUSY",
    `run ${run.runId} of ${mission} is owned by ${run.owner}, so its store is not replaced`,
    {
      hint: `stop that process, or wait until its lease ends; lazarus restore ${mission} --to DIR leaves the cell alone`,
      details: { run: run.runId, owner: run.owner },
    },
  );
}

/** Before the journal is written: nothing in the cell has changed yet. */
export function refuseOpenFiles(
  { tree, cellRoot, mission }: MissionContext,
  plan: RestorePlan,
  conversation: readonly string[],
): void {
  refuseOpenConversation(mission, conversation);
  const devices = [cellRoot, ...outsidePaths(tree)].map(
    (path) => lstatSync(path, { throwIfNoEntry: false })?.dev,
  );
  const open = findFilesOpenForWriting(new Set(devices));
  if (open.size === 0) return;
  const replaced = plan.place.flatMap(({ entry, was }) => (was === null ? [] : [entry.path]));
  for (const path of [
    ...replaced,
    ...plan.clear.map((step) => step.path),
    ...plan.remove.map((step) => step.path),
  ]) {
    const stat = lstatSync(systemPath(diskPath(tree, path)), { throwIfNoEntry: false });
    const holder = stat === undefined ? undefined : open.get(fileIdentity(stat));
    if (holder === undefined) continue;
    throw new LazarusError(
      "CELL_IN_USE",
      `process ${holder.pid} (${holder.program}) has ${JSON.stringify(path)} of ${mission} open for writing, so nothing was restored`,
      {
        hint: `end it (ps -p ${holder.pid} -f), then run the same command again; lazarus restore ${mission} --to DIR leaves the cell alone`,
        details: { path, pid: holder.pid },
      },
    );
  }
}

/** The agent's own files of its session, which a process that Lazarus did not start may be writing. */
function refuseOpenConversation(mission: string, files: readonly string[]): void {
  const stats = files.flatMap((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ path, stat }];
  });
  const open = findFilesOpenForWriting(new Set(stats.map(({ stat }) => stat.dev)));
  for (const { path, stat } of stats) {
    const holder = open.get(fileIdentity(stat));
    if (holder === undefined) continue;
    throw new LazarusError(
      "CELL_IN_USE",
      `process ${holder.pid} (${holder.program}) is writing the conversation of ${mission} (${path}), so nothing was restored`,
      {
        hint: `end it (ps -p ${holder.pid} -f), then run the same command again; lazarus restore ${mission} --files-only leaves the conversation alone`,
        details: { path, pid: holder.pid },
      },
    );
  }
}
