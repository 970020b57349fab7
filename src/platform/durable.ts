// Durable writes (INV-1): once a function here has returned, its effect survives SIGKILL and power loss. Write order:
// temporary file next to the target → fsync → rename (or link) → fsync of the directory. A reader sees the old content
// or the new, never a part of it. A killed writer leaves at most one temporary file, whose name contains the writer's
// pid, so that `sweepTemporaries` can recognize it as orphaned.
import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { crashPoint } from "./crash-point.ts";
import type { Disk } from "./disk.ts";
import { systemErrorCode } from "./errors.ts";

export interface WriteOptions {
  /** Permission bits. Default 0600 (INV-7). */
  readonly mode?: number;
}

export interface ReplaceOptions extends WriteOptions {
  /** Called when the temporary file is complete, immediately before the rename. If it throws, nothing is replaced. */
  beforeRename?(): void;
}

export interface PlaceOptions extends ReplaceOptions {
  /** The content is of no use after a reboot: it is not synced. */
  readonly isHint?: boolean;
}

const PRIVATE_FILE = 0o600;
const PRIVATE_DIRECTORY = 0o700;
const TEMPORARY = /^\.(.+)\.(\d+)\.\d+\.tmp$/;
const NEWLINE = 0x0a;
let temporaryCount = 0;

/** Creates `path` or replaces its content. */
export function replaceFile(
  disk: Disk,
  path: string,
  data: string | Uint8Array,
  options: ReplaceOptions = {},
): void {
  placeFile(disk, path, data, options);
  disk.fsyncDirectory(dirname(path));
  crashPoint("durable.replace.directory-synced");
}

/** `replaceFile` for one of several files: durable once the caller has synced their directory, for all of them. */
export function placeFile(
  disk: Disk,
  path: string,
  data: string | Uint8Array,
  options: PlaceOptions = {},
): void {
  const temporary = writeTemporary(disk, path, data, options);
  try {
    options.beforeRename?.();
    disk.rename(temporary, path);
  } catch (error) {
    discard(disk, temporary);
    throw error;
  }
  crashPoint("durable.replace.renamed");
}

/** Creates `path` with its content unless it exists. Returns whether this call created it. */
export function createFile(
  disk: Disk,
  path: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): boolean {
  const temporary = writeTemporary(disk, path, data, options);
  let created = true;
  try {
    disk.link(temporary, path);
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") {
      discard(disk, temporary);
      throw error;
    }
    created = false;
  }
  crashPoint("durable.create.linked");
  discard(disk, temporary);
  disk.fsyncDirectory(dirname(path));
  crashPoint("durable.create.directory-synced");
  return created;
}

/** Removes a file durably. Returns false when it did not exist. */
export function removeFile(disk: Disk, path: string): boolean {
  try {
    disk.unlink(path);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
    syncEarlierChanges(disk, dirname(path));
    return false;
  }
  crashPoint("durable.remove.unlinked");
  disk.fsyncDirectory(dirname(path));
  return true;
}

/**
 * Appends a line to a log file. A crash can truncate the last line, never an earlier one; the next call terminates a
 * truncated line first, so that later lines stay intact.
 */
export function appendLine(disk: Disk, path: string, line: string, options: WriteOptions = {}): void {
  const fd = disk.openAppend(path, options.mode ?? PRIVATE_FILE);
  try {
    const last = disk.lastByte(fd);
    const torn = last !== undefined && last !== NEWLINE;
    disk.write(fd, Buffer.from(`${torn ? "\n" : ""}${line}\n`));
    crashPoint("durable.append.written");
    disk.fsync(fd);
  } finally {
    disk.close(fd);
  }
  // Every time, not only for a new file: the process that created it may have been killed before this. 40 µs when clean.
  disk.fsyncDirectory(dirname(path));
}

/**
 * Creates `path` and its missing parents. Returns whether this call created `path` itself. Nothing is created in a
 * directory whose own entry is not durable yet, so a directory with content is durable up to the root, however many
 * callers were killed: only the last component of `path` ever has to be synced, and only once per process.
 */
export function makeDirectory(disk: Disk, path: string, mode: number = PRIVATE_DIRECTORY): boolean {
  const known = synced.get(disk) ?? new Map<string, string>();
  synced.set(disk, known);
  const found = identityOf(path);
  if (found !== undefined && known.get(path) === found) return false;
  const isNew = makeDurableDirectory(disk, path, mode);
  known.set(path, identityOf(path) ?? NO_DIRECTORY);
  return isNew;
}

/** Directories that this process has made durable: their paths, and which directory that was. */
const synced = new WeakMap<Disk, Map<string, string>>();
const NO_DIRECTORY = "";

/** Another one for a directory that was removed and made again. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(path, { bigint: true });
    return `${dev} ${ino} ${birthtimeNs}`;
  } catch {
    return undefined;
  }
}

function makeDurableDirectory(disk: Disk, path: string, mode: number): boolean {
  const parent = dirname(path);
  syncEarlierChanges(disk, dirname(parent));
  try {
    return makeLastDirectory(disk, path, mode);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT" || parent === path) throw error;
  }
  makeDirectory(disk, parent, mode);
  // Only one retry: a parent that is a dangling link exists but cannot hold anything.
  return makeLastDirectory(disk, path, mode);
}

function makeLastDirectory(disk: Disk, path: string, mode: number): boolean {
  try {
    disk.mkdir(path, mode);
  } catch (error) {
    if (systemErrorCode(error) !== "EEXIST") throw error;
    syncEarlierChanges(disk, dirname(path));
    return false;
  }
  crashPoint("durable.make-directory.made");
  disk.fsyncDirectory(dirname(path));
  return true;
}

/** Removes temporary files in `directory` whose writer no longer runs. Returns their names. */
export function sweepTemporaries(disk: Disk, directory: string, isAlive: (pid: number) => boolean): string[] {
  const swept: string[] = [];
  for (const name of readdirSync(directory)) {
    const pid = TEMPORARY.exec(name)?.[2];
    if (pid === undefined || isAlive(Number(pid))) continue;
    if (removeFile(disk, join(directory, name))) swept.push(name);
  }
  return swept;
}

/** Makes every replacement of `path` that has not been renamed yet fail with ENOENT, by removing its temporary file. */
export function cancelPendingWrites(disk: Disk, path: string): void {
  let names: readonly string[];
  try {
    names = readdirSync(dirname(path));
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return;
    throw error;
  }
  for (const name of names) {
    if (TEMPORARY.exec(name)?.[1] !== basename(path)) continue;
    try {
      disk.unlink(join(dirname(path), name));
    } catch (error) {
      if (systemErrorCode(error) !== "ENOENT") throw error;
    }
  }
}

function writeTemporary(disk: Disk, path: string, data: string | Uint8Array, options: PlaceOptions): string {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  const { temporary, fd } = createTemporary(disk, path, options.mode ?? PRIVATE_FILE);
  crashPoint("durable.temporary.created");
  try {
    try {
      disk.write(fd, bytes);
      crashPoint("durable.temporary.written");
      if (!options.isHint) disk.fsync(fd);
    } finally {
      disk.close(fd);
    }
  } catch (error) {
    discard(disk, temporary);
    throw error;
  }
  crashPoint("durable.temporary.synced");
  return temporary;
}

function createTemporary(disk: Disk, path: string, mode: number): { temporary: string; fd: number } {
  for (;;) {
    const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.${temporaryCount++}.tmp`);
    try {
      return { temporary, fd: disk.create(temporary, mode) };
    } catch (error) {
      // Left by a dead process with the same pid: use the next number.
      if (systemErrorCode(error) !== "EEXIST") throw error;
    }
  }
}

/**
 * Syncs what another process may have done in `directory` before it was killed, since the caller relies on it. A
 * directory that is missing or may not be opened has no such changes.
 */
function syncEarlierChanges(disk: Disk, directory: string): void {
  try {
    disk.fsyncDirectory(directory);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "ENOENT" && code !== "EACCES") throw error;
  }
}

/** Best effort: the pending error, or the file just created, matters more than a leftover temporary file. */
function discard(disk: Disk, temporary: string): void {
  try {
    disk.unlink(temporary);
  } catch {}
}
