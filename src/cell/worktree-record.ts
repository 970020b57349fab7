// Which directory outside its cell is a mission's worktree, and how to recognize that directory again. The record is next to
// the cells, where a restore never changes it: `config/cell.json` names the directory for other tools, but an agent can
// write that file, so no decision of Lazarus depends on it (INV-11). Nothing is written into the directory itself.
import { type BigIntStats, existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { makeDirectory } from "../platform/durable.ts";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";
import { readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { isInside, isMissionId } from "./mission-id.ts";

/** Skipped by scans of the missions root, like every name that starts with `.lazarus-`. */
const DIRECTORY = ".lazarus-worktrees";
const SUFFIX = ".json";

/** What distinguishes a directory from another one at the same path. Strings: inodes can exceed 2^53. */
export interface DirectoryIdentity {
  readonly device: string;
  readonly inode: string;
  /** Creation time in nanoseconds; null where the file system has none. */
  readonly born_ns: string | null;
}

export interface WorktreeRecord extends DirectoryIdentity {
  readonly format: 1;
  readonly mission_id: string;
  /** Absolute, with links resolved. */
  readonly path: string;
  /** The directory above it. */
  readonly parent: DirectoryIdentity;
  readonly since_ms: number;
  /** When the directory was released; null while it is the mission's worktree. */
  readonly released_ms: number | null;
}

export function worktreeRecords(missionsRoot: string): string {
  return join(missionsRoot, DIRECTORY);
}

export function worktreeRecordFile(missionsRoot: string, mission: string): string {
  return join(worktreeRecords(missionsRoot), `${mission}${SUFFIX}`);
}

/** Undefined for a mission whose worktree is in its cell. Throws when the record cannot be read: nothing is guessed. */
export function readWorktreeRecord(missionsRoot: string, mission: string): WorktreeRecord | undefined {
  const file = worktreeRecordFile(missionsRoot, mission);
  const reading = readJsonFile(file);
  if (!reading.ok && reading.why === "absent") return undefined;
  const value = reading.ok ? reading.value : {};
  if (reading.ok && value.format === 1 && typeof value.path === "string")
    return value as unknown as WorktreeRecord;
  const why = reading.ok ? `its format is ${JSON.stringify(value.format ?? null)}` : reading.reason;
  throw new LazarusError(
    "CELL_DAMAGED",
    `the worktree of ${mission} is unknown: ${file} cannot be read (${why})`,
    { hint: `rm ${file}, then: lazarus protect DIR --mission ${mission}`, details: { mission, file } },
  );
}

/** The record of a mission's worktree, unless its directory was released. */
export function readOutsideWorktree(missionsRoot: string, mission: string): WorktreeRecord | undefined {
  const record = readWorktreeRecord(missionsRoot, mission);
  return record === undefined || record.released_ms !== null ? undefined : record;
}

/** Every mission that has, or had, a worktree outside its cell. */
export function listWorktreeRecords(missionsRoot: string): WorktreeRecord[] {
  const directory = worktreeRecords(missionsRoot);
  return (existsSync(directory) ? readdirSync(directory) : []).flatMap((name) => {
    const mission = name.slice(0, -SUFFIX.length);
    return name.endsWith(SUFFIX) && isMissionId(mission)
      ? (readWorktreeRecord(missionsRoot, mission) ?? [])
      : [];
  });
}

/** The mission whose worktree holds a path, which has its links resolved. */
export function findProtecting(missionsRoot: string, path: string): WorktreeRecord | undefined {
  return listWorktreeRecords(missionsRoot).find(
    (record) => record.released_ms === null && (record.path === path || isInside(record.path, path)),
  );
}

/**
 * The mission whose worktree was moved to this path, which has its links resolved. Without creation times nothing is found:
 * a new directory may have got the inode of a deleted one.
 */
export function findMoved(missionsRoot: string, path: string): WorktreeRecord | undefined {
  const here = identifyDirectory(path);
  if (here?.born_ns == null) return undefined;
  return listWorktreeRecords(missionsRoot).find((record) => {
    if (record.released_ms !== null || record.path === path || !isSameDirectory(record, here)) return false;
    const there = identifyDirectory(record.path);
    return there === undefined || !isSameDirectory(record, there);
  });
}

/** Where the worktree of a cell is, for readers: never throws. */
export function worktreeOf(cellRoot: string): string {
  try {
    const outside = readOutsideWorktree(dirname(cellRoot), basename(cellRoot));
    if (outside !== undefined) return outside.path;
  } catch {
    // A damaged record is reported by what needs it.
  }
  return join(cellRoot, "worktree");
}

/** The state of a mission's worktree outside its cell; "in-cell" for other worktrees. For readers: never throws. */
export type WorktreeState = "in-cell" | "in-place" | "missing" | "replaced" | "released" | "unknown";

export function worktreeState(cellRoot: string): WorktreeState {
  try {
    const record = readWorktreeRecord(dirname(cellRoot), basename(cellRoot));
    if (record === undefined) return "in-cell";
    if (record.released_ms !== null) return "released";
    const found = identifyDirectory(record.path);
    if (found !== undefined) return isSameDirectory(record, found) ? "in-place" : "replaced";
    return existsSync(record.path) ? "replaced" : "missing";
  } catch {
    return "unknown";
  }
}

export function writeWorktreeRecord(machine: Machine, missionsRoot: string, record: WorktreeRecord): void {
  makeDirectory(machine.disk, worktreeRecords(missionsRoot));
  writeJsonFile(machine.disk, worktreeRecordFile(missionsRoot, record.mission_id), record);
}

/** A record of the directory as it is now. Throws when there is none. */
export function describeWorktree(mission: string, path: string, nowMs: number): WorktreeRecord {
  const [own, parent] = [identifyDirectory(path), identifyDirectory(dirname(path))];
  if (own === undefined || parent === undefined)
    throw new LazarusError("NOT_FOUND", `there is no directory ${path}`);
  return { format: 1, mission_id: mission, path, ...own, parent, since_ms: nowMs, released_ms: null };
}

/**
 * The path of a place as seen from `path`: if one of them is or contains the other through a second mount of the same file
 * system, the place gets a path that shows this. Any other place keeps its path.
 */
export function seenFrom(path: string, place: string): string {
  const within = findSame(place, path);
  if (within !== undefined) return join(path, relative(within, place));
  return findSame(path, place) ?? place;
}

/** The directory on the way to `path`, or `path` itself, that is also at `other`. */
function findSame(path: string, other: string): string | undefined {
  const wanted = identifyDirectory(other);
  if (wanted === undefined) return undefined;
  for (let at = path; ; at = dirname(at)) {
    const found = identifyDirectory(at);
    if (found?.device === wanted.device && found.inode === wanted.inode) return at;
    if (at === dirname(at)) return undefined;
  }
}

/** Undefined when there is no directory at the path itself; a link to one does not count. */
export function identifyDirectory(path: string): DirectoryIdentity | undefined {
  let stat: BigIntStats | undefined;
  try {
    stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    if (systemErrorCode(error) !== "ENOTDIR") throw error;
  }
  return stat?.isDirectory() ? identityOf(stat) : undefined;
}

function identityOf({ dev, ino, birthtimeNs }: BigIntStats): DirectoryIdentity {
  return {
    device: String(dev),
    inode: String(ino),
    born_ns: birthtimeNs > 0n ? String(birthtimeNs) : null,
  };
}

/**
 * Device numbers may change when a disk is mounted again; inode and creation time do not. Without a creation time, the
 * device has to be the same.
 */
export function isSameDirectory(known: DirectoryIdentity, found: DirectoryIdentity): boolean {
  if (known.inode !== found.inode || known.born_ns !== found.born_ns) return false;
  return known.born_ns !== null || known.device === found.device;
}
