// Makes a restore durable (INV-1): one fsync per path for a few paths, one sync of the file system for many.
import { closeSync, constants, fsyncSync, openSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { posixSupport } from "../../platform/posix.ts";
import { isInWorktree, outsideWorktree, rootOf, type TreeRoot, WORKTREE } from "../model/cell-tree.ts";
import { systemPath } from "../model/path-bytes.ts";

/**
 * Up to these counts, one fsync per path is faster than syncing the file system, which also flushes what other processes
 * wrote. A new file costs a flush; directories that changed together are flushed with the first of them.
 */
const FSYNC_FILES = 64;
export const FSYNC_DIRECTORIES = 2000;
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Missing, a symlink, a FIFO, or not readable by us: nothing to sync. */
const NOTHING_TO_SYNC = new Set([
  "ENOENT",
  "ENOTDIR",
  "ELOOP",
  "ENXIO",
  "EINVAL",
  "EACCES",
  "EPERM",
  "ENAMETOOLONG",
]);

/** Syncs paths of a cell, which may be on two file systems. */
export function syncTree(tree: TreeRoot, paths: readonly string[], maxFsyncs?: number): void {
  const outside = outsideWorktree(tree);
  const inWorktree = outside === undefined ? [] : paths.filter(isInWorktree);
  const inCell = inWorktree.length === 0 ? paths : paths.filter((path) => !isInWorktree(path));
  syncPaths(rootOf(tree), inCell, maxFsyncs);
  if (outside !== undefined)
    syncPaths(
      outside.path,
      inWorktree.map((path) => path.slice(WORKTREE.length + 1) || "."),
      maxFsyncs,
    );
}

/** Syncs files and directories below `root`, all on its file system. */
export function syncPaths(root: string, paths: readonly string[], maxFsyncs = FSYNC_FILES): void {
  const support = posixSupport();
  if (paths.length <= maxFsyncs || !support.ok) {
    for (const path of paths) syncPath(`${root}/${path}`);
    return;
  }
  const fd = openSync(root, "r");
  try {
    support.posix.syncFileSystem(fd);
  } finally {
    closeSync(fd);
  }
}

function syncPath(path: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(systemPath(path), OPEN_FLAGS);
    fsyncSync(fd);
  } catch (error) {
    if (!NOTHING_TO_SYNC.has(systemErrorCode(error) ?? "")) throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
