// All access of a restore to the files of a cell. Every path is reached through real directories of the cell, so that a
// planted symlink cannot redirect a write. Files that are in no checkpoint are never destroyed (INV-3): they are moved
// next to the cell, and each becomes a flaw.
import { type BigIntStats, chmodSync, existsSync, lstatSync, mkdirSync, renameSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { systemPath } from "../model/path-bytes.ts";
import type { Capabilities } from "./make-path.ts";
import type { Fingerprint } from "./plan.ts";
import { ancestors } from "./scope.ts";

export interface CellAccess {
  readonly flaws: Flaw[];
  absolute(path: string): string;
  /** lstat; undefined when there is nothing. */
  stat(path: string): BigIntStats | undefined;
  /** Whether all parents of `path` are real directories; makes its parent writable for its owner. */
  isReachable(path: string): boolean;
  /** Drops what is cached about parents, after directories were made or removed. */
  invalidate(): void;
  /** Moves what is at `path` out of the cell, and adds a flaw that says where. */
  moveAside(path: string, reason: string): void;
  /** Original modes of directories that were made writable, by path. */
  readonly widened: ReadonlyMap<string, number>;
}

const OWNER_ALL = 0o700;

export interface CellAccessOptions {
  readonly cellRoot: string;
  /** Directory for files that are in no checkpoint. */
  readonly aside: string;
  readonly capabilities: Capabilities;
}

export function createCellAccess({ cellRoot, aside, capabilities }: CellAccessOptions): CellAccess {
  const flaws: Flaw[] = [];
  const real = new Map<string, boolean>();
  const widened = new Map<string, number>();
  const absolute = (path: string) => (path === "." ? cellRoot : `${cellRoot}/${path}`);

  const stat = (path: string): BigIntStats | undefined => {
    try {
      return lstatSync(systemPath(absolute(path)), { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      if (systemErrorCode(error) === "ENOTDIR") return undefined;
      throw error;
    }
  };

  const isRealDirectory = (path: string): boolean => {
    const known = real.get(path);
    if (known !== undefined) return known;
    // The cell itself may be a symlink; it was checked to stay inside the missions root.
    const found = path === "." ? statSync(cellRoot, { bigint: true, throwIfNoEntry: false }) : stat(path);
    const answer = found?.isDirectory() ?? false;
    if (answer && !capabilities.owners) widen(path, Number(found!.mode) & 0o7777);
    real.set(path, answer);
    return answer;
  };

  /** Anyone but root needs the owner's permission bits to work in a directory. */
  const widen = (path: string, mode: number) => {
    if ((mode & OWNER_ALL) === OWNER_ALL || widened.has(path)) return;
    try {
      chmodSync(systemPath(absolute(path)), mode | OWNER_ALL);
      widened.set(path, mode);
    } catch {
      // Not our directory: the step that needs it reports the error.
    }
  };

  return {
    flaws,
    absolute,
    stat,
    widened,
    isReachable: (path) => path === "." || [...ancestors(path)].reverse().every(isRealDirectory),
    invalidate: () => real.clear(),
    moveAside(path, reason) {
      let place = join(aside, path);
      for (let n = 1; existsSync(systemPath(place)); n += 1) place = `${join(aside, path)}.${n}`;
      mkdirSync(systemPath(dirname(place)), { recursive: true, mode: 0o700 });
      renameSync(systemPath(absolute(path)), systemPath(place));
      crashPoint("snapshot.restore.set-aside");
      flaws.push({ path, kind: "degraded", reason: `${reason}; it was moved to ${place}` });
    },
  };
}

/** Undefined for sockets, devices and the like. */
export function typeOf(stat: BigIntStats): EntryType | undefined {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  return stat.isFIFO() ? "fifo" : undefined;
}

/** Whether an lstat matches a fingerprint. Times of directories are ignored: they change with every name in them. */
export function matches(stat: BigIntStats, expected: Omit<Fingerprint, "mode"> | null): boolean {
  if (expected === null || typeOf(stat) !== expected.type) return false;
  if (expected.type === "directory") return true;
  const same = stat.mtimeNs === BigInt(expected.mtimeSec) * 1_000_000_000n + BigInt(expected.mtimeNs);
  return same && (expected.type !== "file" || Number(stat.size) === expected.size);
}
