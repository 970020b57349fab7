// Deletes a mission: its cell, vault, effect history, caches, and what the pit keeps about its agent. A directory in place, and
// whatever a cell that is a link refers to, stay as they are. Nothing is deleted under its own name: it is first renamed, to a
// name that no scan shows, so that an interrupted deletion leaves no half of a cell or vault, and the same call again finishes
// it. What could start the agent again goes first, the vault after the cell, and the locks last.
import { existsSync, lstatSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { agentPaths } from "../../cell/agent-paths.ts";
import { isKnownMission, unknownMission } from "../../cell/known-missions.ts";
import { cellRoot } from "../../cell/mission-id.ts";
import { lockMissionAfterStop } from "../../cell/mission-lock.ts";
import { worktreeRecordFile } from "../../cell/worktree-record.ts";
import { historyFile } from "../../effects/place.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError, quietly } from "../../platform/errors.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import { findHeldRun } from "../../run/store/positions.ts";
import { type MissionContext, resolvePath } from "../mission-context.ts";
import { finishInterruptedRestore } from "../restore/roll-forward.ts";
import { findFilesOpenForWriting } from "../scan/open-files.ts";
import { refuseStaleWorktree } from "../worktree.ts";
import { refuseLiveAgent } from "./live-processes.ts";
import { recordDeletion } from "./record.ts";

/** What a deletion removes and what it leaves. */
export interface Deletion {
  /** Existing paths, in the order in which they are removed. */
  readonly paths: readonly string[];
  readonly checkpoints: number;
  /** The directory in place, or the target of a cell that is a link: not touched. */
  readonly kept: string | null;
}

/** Throws MISSION_UNKNOWN when nothing is left of the mission. `others`: more files of it. */
export function planDeletion(context: MissionContext, others: readonly string[] = []): Deletion {
  const { config, mission, vault, worktree } = context;
  const { directory } = agentPaths(config, mission);
  const paths = [...agentFiles(directory), ...cellFiles(context), vault.root, ...others, directory];
  // What an interrupted deletion left comes first, because its names are used again.
  const found = [...new Set([...paths.map((path) => asideOf(context, path)), ...paths])].filter(exists);
  if (found.length === 0 && !isKnownMission(config, mission)) throw unknownMission(config, mission);
  const isProtecting = worktree !== undefined && worktree.released_ms === null;
  const kept = isProtecting ? worktree.path : isLink(placeOf(context)) ? context.cellRoot : null;
  return { paths: found, checkpoints: countCheckpoints(context), kept };
}

export async function deleteMission(
  context: MissionContext,
  others: readonly string[] = [],
): Promise<Deletion> {
  const { machine, config, mission, cellRoot: root, vault } = context;
  planDeletion(context, others);
  using _mission = await lockMissionAfterStop(machine, config, mission, `deletion of ${mission}`);
  refuseLiveAgent(context, "setup");
  refuseLiveRun(context);
  refuseOpenFiles(context);
  using lock = await vault.lock(`deletion of ${mission}`);
  const deletion = planDeletion(context, others);
  if (deletion.kept !== null && existsSync(vault.journalFile)) {
    // Otherwise what is kept would stay halfway between two states.
    refuseStaleWorktree(context);
    finishInterruptedRestore(context, lock);
  }
  const locks = agentPaths(config, mission).directory;
  for (const path of deletion.paths.filter((path) => path !== locks)) {
    remove(context, path);
    crashPoint("snapshot.delete.removed");
  }
  // While the mission still exists: later, nothing would take its checkpoints out of the index.
  recordDeletion(context, { root, checkpoints: deletion.checkpoints, kept: deletion.kept });
  remove(context, locks);
  return deletion;
}

const placeOf = ({ config, mission }: MissionContext) => cellRoot(config.missions_root, mission);

/** Everything but the locks, which this process holds. */
function agentFiles(directory: string): string[] {
  if (!existsSync(directory)) return [];
  const names = readdirSync(directory).filter((name) => !name.endsWith("lock"));
  // Without its record, no pit starts the agent again.
  const isRecord = (name: string) => Number(name === "record.json");
  return names.sort((a, b) => isRecord(b) - isRecord(a)).map((name) => join(directory, name));
}

function cellFiles(context: MissionContext): string[] {
  const { config, mission, cacheDirectory } = context;
  const place = placeOf(context);
  const beside = ["restore", "aside", "drill", "fork"].map((use) =>
    join(dirname(place), `.lazarus-${use}-${mission}`),
  );
  // That of a cell that is a link belongs to its target.
  const history = isLink(place) ? [] : [historyFile(place)];
  return [place, ...beside, ...history, worktreeRecordFile(config.missions_root, mission), cacheDirectory];
}

/** A file is removed in one step; a directory is renamed first. */
function remove(context: MissionContext, path: string): void {
  const { disk } = context.machine;
  const stat = lstatSync(path, { throwIfNoEntry: false });
  // A pit removes its own files of a mission that it no longer protects.
  if (stat === undefined) return;
  if (!stat.isDirectory()) {
    rmSync(path, { force: true });
    disk.fsyncDirectory(dirname(path));
    return;
  }
  const aside = asideOf(context, path);
  if (path !== aside) {
    removeTree(aside);
    disk.rename(path, aside);
    disk.fsyncDirectory(dirname(path));
    crashPoint("snapshot.delete.set-aside");
  }
  removeTree(aside);
}

function asideOf({ mission }: MissionContext, path: string): string {
  return join(dirname(path), `.lazarus-deleted-${mission}`);
}

function refuseLiveRun({ cellRoot: root, machine, mission }: MissionContext): void {
  const run = findHeldRun(root, machine.processes, machine.clock.nowMs());
  if (run === undefined) return;
  throw new LazarusError(
    "RUN_BUSY",
    `run ${run.runId} of ${mission} is owned by ${run.owner}; nothing was deleted`,
    {
      hint: `stop that process, or: lazarus runs cancel ${run.runId}; then run the same command again`,
      details: { run: run.runId, owner: run.owner },
    },
  );
}

/** A process without a keeper, such as an agent that Lazarus did not start. Its files would lose their names. */
function refuseOpenFiles(context: MissionContext): void {
  const { mission, cellRoot: root } = context;
  if (!exists(root) || isLink(placeOf(context))) return;
  const open = findFilesOpenForWriting(new Set([lstatSync(root).dev]));
  const found = [...open.values()].find(({ path }) => path.startsWith(`${resolvePath(root)}/`));
  if (found === undefined) return;
  const { pid, program, path } = found;
  throw new LazarusError(
    "CELL_IN_USE",
    `process ${pid} (${program}) has ${path} open for writing; nothing of ${mission} was deleted`,
    {
      hint: `end it (ps -p ${pid} -f), then run the same command again`,
      details: { path, pid },
    },
  );
}

function countCheckpoints({ vault }: MissionContext): number {
  // A damaged vault can be deleted, too.
  return quietly(() => vault.list().length) ?? 0;
}

const exists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const isLink = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
