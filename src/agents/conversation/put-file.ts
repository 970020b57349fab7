// Writes the copies in the cell and the cache: atomic, so that a killed process leaves the old file or the new one, but not
// synced: the checkpoint that follows stores the bytes durably. Never through a link that an agent created.
import { lstatSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Disk } from "../../platform/disk.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { SourceError } from "./source.ts";

/** Excluded from checkpoints, like every name with this prefix. */
const TEMPORARY = ".lazarus-part";

/** The caller holds the vault's lock: there is one writer. */
export function putFile(disk: Disk, path: string, bytes: Uint8Array): void {
  const temporary = join(dirname(path), TEMPORARY);
  const fd = create(disk, temporary);
  try {
    disk.write(fd, bytes);
  } finally {
    disk.close(fd);
  }
  disk.rename(temporary, path);
}

function create(disk: Disk, path: string): number {
  try {
    return disk.create(path, 0o600);
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
    // Left by a killed process.
    unlinkSync(path);
    return disk.create(path, 0o600);
  }
}

/** Makes the directories of `path` below `root`; each must be a real one. */
export function makeDirectories(disk: Disk, root: string, path: string): string {
  let current = root;
  for (const name of path.split("/")) {
    current = join(current, name);
    const stat = lstatSync(current, { throwIfNoEntry: false });
    if (stat === undefined) disk.mkdir(current, 0o700);
    else if (!stat.isDirectory()) throw new SourceError(`${current} is not a directory`);
  }
  return current;
}
