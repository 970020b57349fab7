// The worktree of a mission that is a directory outside the cell: whether it is still the one that the user chose. Nothing is
// captured from or restored into another directory at the same path (INV-3, INV-11).
import { lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { Config } from "../cell/config.ts";
import { pathsBelow } from "../cell/layout.ts";
import { isInside, type MissionId, refuseOutside } from "../cell/mission-id.ts";
import {
  describeWorktree,
  identifyDirectory,
  isSameDirectory,
  readWorktreeRecord,
  type WorktreeRecord,
  writeWorktreeRecord,
} from "../cell/worktree-record.ts";
import { crashPoint } from "../platform/crash-point.ts";
import { makeDirectory } from "../platform/durable.ts";
import { LazarusError, quietly } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { shellWord } from "../platform/shell-word.ts";
import { outsideWorktree, type TreeRoot, WORKTREE } from "./model/cell-tree.ts";
import type { CheckpointRef, Flaw } from "./model/entry.ts";

/** The part of a mission's context that says where its worktree is. */
export interface Placed {
  readonly config: Config;
  readonly mission: MissionId;
  readonly cellRoot: string;
  readonly tree: TreeRoot;
  /** Undefined for a worktree in the cell. */
  readonly worktree: WorktreeRecord | undefined;
}

/** Where the paths of a cell are. A directory that is missing or replaced keeps its recorded identity. */
export function treeOf(cellRoot: string, record: WorktreeRecord | undefined): TreeRoot {
  if (record === undefined || record.released_ms !== null) return cellRoot;
  const found = identifyDirectory(record.path);
  const { device, inode } = found !== undefined && isSameDirectory(record, found) ? found : record;
  return { root: cellRoot, worktree: { path: record.path, id: `${device}:${inode}` } };
}

export interface Requirements {
  readonly mayBeMissing?: boolean;
  /** A checkpoint that will be restored into the worktree. */
  readonly target?: CheckpointRef | undefined;
}

/** Throws unless the worktree is the directory that was chosen, or, where that is allowed, is missing. */
export function requireWorktree(placed: Placed, { mayBeMissing = false, target }: Requirements = {}): void {
  const { worktree: record, mission } = placed;
  if (record !== undefined && record.released_ms !== null) throw releasedError(mission, record);
  if (record !== undefined && target !== undefined && target.createdAtMs < record.since_ms)
    throw earlierError(mission, record, target.id);
  const outside = outsideWorktree(placed.tree);
  if (outside === undefined || record === undefined) return;
  const found = identifyDirectory(outside.path);
  if (found !== undefined && `${found.device}:${found.inode}` === outside.id) return;
  const here = lstatSync(outside.path, { throwIfNoEntry: false });
  if (here !== undefined)
    throw replacedError(mission, record, found === undefined ? "not a directory" : "another directory");
  refuseLostMount(mission, record);
  if (!mayBeMissing) throw missingError(mission, record);
}

/** The directory above is not the same as before, or the worktree itself was a mount: its file system may be missing. */
function isMountLost(record: WorktreeRecord): boolean {
  const parent = identifyDirectory(dirname(record.path));
  return (
    parent === undefined || !isSameDirectory(record.parent, parent) || record.device !== record.parent.device
  );
}

function refuseLostMount(mission: string, record: WorktreeRecord): void {
  if (!isMountLost(record)) return;
  throw new LazarusError(
    "WORKTREE_MISSING",
    `the worktree of ${mission}, ${record.path}, is missing, and so is the file system or directory that it was in`,
    {
      hint:
        `mount it again; or, if it was moved: lazarus protect NEWDIR --mission ${mission}; ` +
        `to restore it elsewhere: lazarus restore ${mission} --to DIR`,
      details: { mission, path: record.path },
    },
  );
}

function missingError(mission: string, { path }: WorktreeRecord): LazarusError {
  return new LazarusError("WORKTREE_MISSING", `the worktree of ${mission}, ${path}, does not exist`, {
    hint: `lazarus restore ${mission}, to bring it back; if it was moved: lazarus protect NEWDIR --mission ${mission}`,
    details: { mission, path },
  });
}

function replacedError(mission: string, { path, inode }: WorktreeRecord, now: string): LazarusError {
  return new LazarusError(
    "WORKTREE_REPLACED",
    `${path} was the worktree of ${mission} (inode ${inode}) and is ${now} now: it was moved or replaced, so nothing was read or written there`,
    {
      hint:
        `if it was moved: lazarus protect NEWDIR --mission ${mission}; ` +
        `if this is the right one: lazarus protect ${shellWord(path)} --mission ${mission}`,
      details: { mission, path },
    },
  );
}

/** The checkpoint contains files of another directory, or of none. */
function earlierError(mission: string, { path }: WorktreeRecord, id: string): LazarusError {
  return new LazarusError(
    "WORKTREE_REFUSED",
    `checkpoint ${id} is from before ${path} became the worktree of ${mission}: its files belong elsewhere`,
    { hint: `lazarus restore ${mission} ${id} --to DIR`, details: { mission, path, checkpoint: id } },
  );
}

function releasedError(mission: string, { path }: WorktreeRecord): LazarusError {
  return new LazarusError("WORKTREE_RELEASED", `${mission} no longer protects ${path}: it was released`, {
    hint: `lazarus protect ${shellWord(path)} --mission ${mission}, or lazarus restore ${mission} --to DIR`,
    details: { mission, path },
  });
}

/**
 * Makes the cell agree with the record: its directory `worktree`, which other tools look for, and the path in its
 * config/cell.json, which an agent may have changed.
 */
export function markWorktree({
  machine,
  config,
  mission,
  cellRoot,
  tree,
}: Placed & { readonly machine: Machine }): void {
  const outside = outsideWorktree(tree);
  if (outside === undefined) return;
  makeDirectory(machine.disk, join(cellRoot, WORKTREE));
  const { configFile } = pathsBelow(config, cellRoot);
  const reading = readJsonFile(configFile, undefined, exactNumbers);
  if (!reading.ok || reading.value.worktree === outside.path) return;
  refuseOutside(cellRoot, dirname(configFile));
  writeJsonFile(machine.disk, configFile, { ...reading.value, mission_id: mission, worktree: outside.path });
}

type Placement = Pick<Placed, "tree" | "worktree">;

/** For a restore: creates a missing worktree as an empty directory and records it. Returns where it is now. */
export function remakeWorktree(placed: Placed & { readonly machine: Machine }): Placement {
  const { machine, tree, worktree } = placed;
  const path = outsideWorktree(tree)?.path;
  if (path === undefined || identifyDirectory(path) !== undefined) return { tree, worktree };
  mkdirSync(path, 0o700);
  machine.disk.fsyncDirectory(dirname(path));
  crashPoint("snapshot.restore.worktree-made");
  return adoptEmptyWorktree(placed);
}

/** Adopts an empty directory at the path of the worktree, left by a killed restore or made by the user. */
export function adoptEmptyWorktree(placed: Placed & { readonly machine: Machine }): Placement {
  const found = withEmptyWorktree(placed);
  if (found.worktree === undefined || found.worktree === placed.worktree) return found;
  writeWorktreeRecord(placed.machine, placed.config.missions_root, found.worktree);
  crashPoint("snapshot.restore.worktree-recorded");
  return found;
}

/** Where a restore would go: as `adoptEmptyWorktree`, but records nothing. */
export function withEmptyWorktree({ cellRoot, mission, tree, worktree: record }: Placed): Placement {
  const path = outsideWorktree(tree)?.path;
  const found = path === undefined ? undefined : identifyDirectory(path);
  const isEmpty =
    path !== undefined &&
    record !== undefined &&
    found !== undefined &&
    !isSameDirectory(record, found) &&
    !isMountLost(record) &&
    readdirSync(path).length === 0;
  if (!isEmpty) return { tree, worktree: record };
  const worktree = describeWorktree(mission, path, record.since_ms);
  return { tree: treeOf(cellRoot, worktree), worktree };
}

/** Refuses to continue with a context that was opened before the worktree was set up, moved or released. */
export function refuseStaleWorktree({ config, mission, worktree }: Placed): void {
  const now = readWorktreeRecord(config.missions_root, mission);
  if (JSON.stringify(now) === JSON.stringify(worktree)) return;
  throw new LazarusError("LOCK_HELD", `the worktree of ${mission} was changed by another command`, {
    hint: "run the same command again",
  });
}

/** Files that look as if they were saved and are not (INV-6). */
export function findUnsavedFiles(placed: Placed): Flaw[] {
  const outside = outsideWorktree(placed.tree);
  return outside === undefined ? findOtherWorktree(placed) : findHiddenFiles(placed, outside.path);
}

/** Files in the cell's own directory `worktree`, which is not used while the worktree is elsewhere. */
function findHiddenFiles({ cellRoot }: Placed, worktree: string): Flaw[] {
  const own = join(cellRoot, WORKTREE);
  const count = quietly(() => readdirSync(own).length) ?? 0;
  if (count === 0) return [];
  const reason = `${own} has files that are not saved (${count} entries): the worktree is ${worktree}`;
  return [{ path: WORKTREE, kind: "degraded", reason }];
}

/** Another tool, or the agent, named a directory outside the cell: the user has not chosen it. */
function findOtherWorktree({ config, mission, cellRoot }: Placed): Flaw[] {
  const { configFile } = pathsBelow(config, cellRoot);
  const reading = readJsonFile(configFile);
  const named = reading.ok ? reading.value.worktree : undefined;
  // A cell that was copied still names the worktree of the original.
  if (typeof named !== "string" || !isAbsolute(named) || named.endsWith(`/${mission}/${WORKTREE}`)) return [];
  try {
    const real = realpathSync.native(named);
    if (!statSync(real).isDirectory() || isInside(realpathSync.native(cellRoot), real)) return [];
  } catch {
    return [];
  }
  const next = `lazarus protect ${shellWord(named)} --mission ${mission}`;
  const reason = `it names ${named} as the worktree, which is not saved; to protect it: ${next}`;
  return [{ path: configFile.slice(cellRoot.length + 1), kind: "degraded", reason }];
}
