// The hands of a restore inside a cell: every look and every move goes through here, by a path whose parents are real
// directories of the cell, so that a planted link cannot lead them elsewhere. What is on disk and in no checkpoint is
// never destroyed (INV-3): it is moved aside, beside the cell, and that is said.
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { systemPath } from "../model/path-bytes.ts";
import type { Means } from "./make-path.ts";
import type { Fingerprint } from "./plan.ts";
import { ancestors } from "./scope.ts";

export interface Hands {
  readonly flaws: Flaw[];
  /** The absolute path, for calls that take one. */
  at(path: string): string;
  /** What is there; undefined when nothing is. */
  look(path: string): BigIntStats | undefined;
  /** Whether `path` can be reached through directories alone; makes its parent writable for us. */
  reach(path: string): boolean;
  /** Directories were made or removed: what is known of parents is out of date. */
  forget(): void;
  /** Moves what is at `path` out of the cell, where the user finds it. */
  setAside(path: string, why: string): void;
  /** Permission bits that were widened to work inside, by path. */
  readonly widened: ReadonlyMap<string, number>;
}

const OWNER_ALL = 0o700;

export interface HandsOptions {
  readonly cellRoot: string;
  /** Where things that are in no checkpoint go. */
  readonly aside: string;
  readonly means: Means;
}

export function createHands({ cellRoot, aside, means }: HandsOptions): Hands {
  const flaws: Flaw[] = [];
  const real = new Map<string, boolean>();
  const widened = new Map<string, number>();
  const at = (path: string) => (path === "." ? cellRoot : `${cellRoot}/${path}`);

  const look = (path: string): BigIntStats | undefined => {
    try {
      return lstatSync(systemPath(at(path)), { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      if (systemErrorCode(error) === "ENOTDIR") return undefined;
      throw error;
    }
  };

  const isRealDirectory = (path: string): boolean => {
    const known = real.get(path);
    if (known !== undefined) return known;
    // The cell itself may be a link, which was checked to stay inside the missions' root.
    const stat = path === "." ? statSync(cellRoot, { bigint: true, throwIfNoEntry: false }) : look(path);
    const answer = stat?.isDirectory() ?? false;
    if (answer && !means.owners) widen(path, Number(stat!.mode) & 0o7777);
    real.set(path, answer);
    return answer;
  };

  /** Only the owner of everything may work in a directory that is closed to its owner. */
  const widen = (path: string, mode: number) => {
    if ((mode & OWNER_ALL) === OWNER_ALL || widened.has(path)) return;
    try {
      chmodSync(systemPath(at(path)), mode | OWNER_ALL);
      widened.set(path, mode);
    } catch {
      // Not ours: what has to be done inside will say why it failed.
    }
  };

  return {
    flaws,
    at,
    look,
    widened,
    reach: (path) => path === "." || [...ancestors(path)].reverse().every(isRealDirectory),
    forget: () => real.clear(),
    setAside(path, why) {
      let place = join(aside, path);
      for (let n = 1; existsSync(systemPath(place)); n += 1) place = `${join(aside, path)}.${n}`;
      mkdirSync(systemPath(dirname(place)), { recursive: true, mode: 0o700 });
      renameSync(systemPath(at(path)), systemPath(place));
      crashPoint("snapshot.restore.set-aside");
      flaws.push({ path, kind: "degraded", reason: `${why}; what was there is now ${place}` });
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

/** Whether what lstat shows is what a listing said. Directories change their time whenever a name in them does. */
export function matches(stat: BigIntStats, mark: Omit<Fingerprint, "mode"> | null): boolean {
  if (mark === null || typeOf(stat) !== mark.type) return false;
  if (mark.type === "directory") return true;
  const same = stat.mtimeNs === BigInt(mark.mtimeSec) * 1_000_000_000n + BigInt(mark.mtimeNs);
  return same && (mark.type !== "file" || Number(stat.size) === mark.size);
}

const SQLITE_MAGIC = "SQLite format 3\0";
const LOOK = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export function isDatabase(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(systemPath(path), LOOK);
  } catch {
    return false;
  }
  try {
    const head = Buffer.alloc(SQLITE_MAGIC.length);
    return readSync(fd, head, 0, head.length, 0) === head.length && head.toString("latin1") === SQLITE_MAGIC;
  } catch {
    return false;
  } finally {
    closeSync(fd);
  }
}
