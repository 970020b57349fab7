// Makes what a restore wrote durable (INV-1): an fsync for each of a few paths, one sync of the file system for many.
import { closeSync, constants, fsyncSync, openSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { posixSupport } from "../../platform/posix.ts";
import { systemPath } from "../model/path-bytes.ts";

/**
 * Up to here an fsync each is quicker than a sync of everything that others write there as well. New files cost a flush
 * each; directories that changed together are durable with the first of them, and the rest return at once.
 */
const FSYNC_FILES = 64;
export const FSYNC_DIRECTORIES = 2000;
const LOOK = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Gone again or never made, a link, a FIFO, or not ours to open: nothing that an fsync could help. */
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

/** Files and directories below `root`, which lie on its file system. */
export function syncPaths(root: string, paths: readonly string[], most = FSYNC_FILES): void {
  const support = posixSupport();
  if (paths.length <= most || !support.ok) {
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
    fd = openSync(systemPath(path), LOOK);
    fsyncSync(fd);
  } catch (error) {
    if (!NOTHING_TO_SYNC.has(systemErrorCode(error) ?? "")) throw error;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
