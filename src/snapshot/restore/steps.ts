// The steps of a restore in place. Each checks the path first: what the safety checkpoint contains is replaced, what an
// earlier attempt already restored is left alone, and anything else is in no checkpoint and is moved aside (INV-3). No
// step follows a symlink.
import {
  type BigIntStats,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Entry } from "../model/entry.ts";
import { joinPath, parentPath, systemPath } from "../model/path-bytes.ts";
import { isDatabaseFile } from "../model/sqlite-files.ts";
import type { FileReader } from "../vault/layer-reader.ts";
import { type CellAccess, matches, typeOf } from "./cell-access.ts";
import { type Capabilities, makeFile, makeSpecial, setMetadata } from "./make-path.ts";
import type { DirectoryStep, Fingerprint, Kept, PlaceStep, RemoveStep } from "./plan.ts";
import { syncPaths } from "./sync.ts";

const CHANGED_SINCE = "it changed after the safety checkpoint was taken";
const FIXED = "the worktree is a directory outside the cell, which is never replaced or removed";
const UNREACHABLE = "a parent directory is missing, or is a symlink, which a restore never follows";

/** A step that fails for one path; the others continue. */
export class Refusal extends Error {}

/** Removes a path that the checkpoint does not have. `inTheWay`: another type takes its place. */
export function removeStep(
  cell: CellAccess,
  { path, was }: RemoveStep,
  kept: Kept[],
  inTheWay = false,
): void {
  const stat = cell.stat(path);
  if (stat === undefined) return;
  const type = typeOf(stat);
  if (type === undefined) {
    kept.push({ path, reason: "a socket or device" });
  } else if (cell.isFixed(path)) {
    kept.push({ path, reason: FIXED });
  } else if (type === "directory") {
    if (was.type === "directory") removeDirectory(cell, path, kept);
    else kept.push({ path, reason: "a directory that appeared after the safety checkpoint" });
  } else if (isInSafety(cell, path, stat, was)) {
    unlinkSync(systemPath(cell.at(path)));
  } else if (!(inTheWay && was.type === "directory")) cell.moveAside(path, CHANGED_SINCE);
}

function removeDirectory(cell: CellAccess, path: string, kept: Kept[]): void {
  try {
    rmdirSync(systemPath(cell.at(path)));
    cell.forget(path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    kept.push({ path, reason: "a directory that contains files in no checkpoint" });
  }
}

/** Makes a directory unless it exists. */
export function directoryStep(cell: CellAccess, { entry, was }: DirectoryStep): void {
  const { path } = entry;
  if (path === ".") return;
  if (!cell.isReachable(path)) throw new Refusal(UNREACHABLE);
  const stat = cell.stat(path);
  if (stat?.isDirectory()) return;
  if (stat !== undefined) {
    if (isInSafety(cell, path, stat, was)) unlinkSync(systemPath(cell.at(path)));
    else cell.moveAside(path, CHANGED_SINCE);
  }
  mkdirSync(systemPath(cell.at(path)), 0o700);
  cell.forget(path);
}

/** Sets mode, owner, attributes and time, after everything inside is done. */
export function finishDirectoryStep(
  cell: CellAccess,
  { entry, was, set }: DirectoryStep,
  capabilities: Capabilities,
): void {
  // A parent of selected paths keeps its metadata, unless it was made for them.
  if (!set && was?.type === "directory") return;
  const stat = cell.stat(entry.path);
  if (!stat?.isDirectory() && !(entry.path === "." && stat !== undefined)) return;
  if (entry.path !== "." && !cell.isReachable(entry.path)) throw new Refusal(UNREACHABLE);
  setMetadata(cell.at(entry.path), entry, capabilities, cell.flaws);
}

export function adjustStep(
  cell: CellAccess,
  entry: Entry,
  was: Fingerprint,
  capabilities: Capabilities,
): void {
  if (!cell.isReachable(entry.path)) throw new Refusal(UNREACHABLE);
  const stat = cell.stat(entry.path);
  const known = stat !== undefined && (isInSafety(cell, entry.path, stat, was) || matches(stat, entry));
  if (!known) throw new Refusal(`${CHANGED_SINCE} and was left alone`);
  setMetadata(cell.at(entry.path), entry, capabilities, cell.flaws);
}

export interface Placing {
  readonly staged: string;
  readonly index: number;
  /** Path of another step whose inode it shares. */
  readonly leader: string | undefined;
  readonly capabilities: Capabilities;
  /** Sidecar files of the database that is replaced. */
  readonly sidecars: readonly string[];
  readonly safetyMs: number;
  restage(): void;
}

/** Renames one staged path into place. */
export function placeStep(cell: CellAccess, { entry, was }: PlaceStep, placing: Placing): void {
  const { path } = entry;
  if (cell.isFixed(path)) throw new Refusal(FIXED);
  if (!cell.isReachable(path)) throw new Refusal(UNREACHABLE);
  const stat = cell.stat(path);
  if (lstatSync(placing.staged, { throwIfNoEntry: false }) === undefined) {
    // A staged path disappears only when it is put into place.
    if (stat !== undefined && matches(stat, entry)) return;
    placing.restage();
  }
  if (stat?.isDirectory()) {
    if (was?.type !== "directory")
      cell.moveAside(path, "a directory appeared here after the safety checkpoint");
    else removeObstacle(cell, path);
  } else if (stat !== undefined && !isInSafety(cell, path, stat, was) && !matches(stat, entry)) {
    cell.moveAside(path, was === null ? "it is in no checkpoint" : CHANGED_SINCE);
  }
  for (const sidecar of placing.sidecars) removeSidecar(cell, sidecar, path, placing.safetyMs);
  try {
    renameSync(placing.staged, systemPath(cell.at(path)));
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    placeAcross(cell, entry, placing);
  }
}

function removeObstacle(cell: CellAccess, path: string): void {
  try {
    rmdirSync(systemPath(cell.at(path)));
    cell.forget(path);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    throw new Refusal("the directory in its place contains files in no checkpoint");
  }
}

/** Another file system is mounted there: copy next to the target, then rename. */
function placeAcross(cell: CellAccess, entry: Entry, placing: Placing): void {
  const temporary = joinPath(parentPath(entry.path), `.lazarus-restore-${placing.index}.tmp`);
  rmSync(systemPath(cell.at(temporary)), { force: true });
  if (!linkAcross(cell, placing.leader, temporary)) {
    if (placing.leader !== undefined) {
      cell.flaws.push({
        path: entry.path,
        kind: "degraded",
        reason: "a hard link cannot span two file systems; it is a copy",
      });
    }
    if (entry.type === "file")
      makeFile(cell.at(temporary), entry, createCopyReader(placing.staged), placing.capabilities, cell.flaws);
    else makeSpecial(cell.at(temporary), entry, placing.capabilities, cell.flaws);
    // Only what is staged was synced before.
    syncPaths(cell.directory(parentPath(temporary)), [temporary.slice(temporary.lastIndexOf("/") + 1)]);
  }
  crashPoint("snapshot.restore.copied-across");
  renameSync(systemPath(cell.at(temporary)), systemPath(cell.at(entry.path)));
  rmSync(placing.staged, { force: true });
}

function linkAcross(cell: CellAccess, leader: string | undefined, temporary: string): boolean {
  if (leader === undefined) return false;
  try {
    linkSync(systemPath(cell.at(leader)), systemPath(cell.at(temporary)));
    return true;
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    return false;
  }
}

const COPY_BYTES = 1 << 20;

/** Reads the data of a staged file without its holes. It was verified when it was staged. */
function createCopyReader(file: string): FileReader {
  return {
    read(entry, use) {
      const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        for (const [offset, length] of entry.extents ?? [[0, entry.size] as const]) {
          for (let at = offset; at < offset + length; ) {
            const buffer = Buffer.allocUnsafe(Math.min(COPY_BYTES, offset + length - at));
            const count = readSync(fd, buffer, 0, buffer.length, at);
            if (count === 0) throw new Refusal("its staged copy is truncated");
            use(buffer.subarray(0, count));
            at += count;
          }
        }
      } finally {
        closeSync(fd);
      }
    },
  };
}

/**
 * SQLite would apply the write-ahead log of the replaced database to the restored one and corrupt it. The safety
 * checkpoint contains what was in the log, unless it was written to since.
 */
export function removeSidecar(cell: CellAccess, sidecar: string, database: string, safetyMs: number): void {
  const stat = cell.stat(sidecar);
  if (stat === undefined || !stat.isFile() || !isDatabaseFile(() => cell.at(database))) return;
  const derived = sidecar.endsWith("-shm");
  if (derived || Number(stat.mtimeMs) < safetyMs) unlinkSync(systemPath(cell.at(sidecar)));
  else cell.moveAside(sidecar, "it was written after the safety checkpoint was taken");
  crashPoint("snapshot.restore.sidecar-removed");
}

/** Whether the safety checkpoint contains it. A database copied through SQLite may differ in size from the file. */
function isInSafety(cell: CellAccess, path: string, stat: BigIntStats, was: Fingerprint | null): boolean {
  if (matches(stat, was)) return true;
  if (was?.type !== "file" || !stat.isFile()) return false;
  return matches(stat, { ...was, size: Number(stat.size) }) && isDatabaseFile(() => cell.at(path));
}
