// One walk of a cell, compared with the stat cache as it goes. A directory whose own stat is unchanged is
// not read again: its names are known, unless some were left out of the last checkpoint. What is as it was costs one
// lstat, taken beforehand (by threads, where there is much), and no object: it is *still*, a mark at its row of the
// cache. Nothing is opened here but directories.
import { constants, lstatSync, readdirSync, type Stats } from "node:fs";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { decodePath, encodePath, joinPath, systemPath } from "../model/path-bytes.ts";
import type { Matcher } from "../settings.ts";
import { nameAt } from "./name-table.ts";
import { type Probers, probeRows, UNCHANGED } from "./probe.ts";
import { findRow, isUnchanged, type StatCache, TYPE_CODES } from "./stat-cache.ts";
import { foundStill } from "./still.ts";

/** A path that is there. `row` is its place in the cache when it was there last time with the same type. */
export interface Found {
  readonly path: string;
  readonly type: EntryType;
  readonly row: number;
  /** Stat says nothing changed since the cache was written, and that can be believed. */
  readonly unchanged: boolean;
  readonly size: number;
  readonly nlink: number;
  /** Device and inode, exact: two names are the same file when these are equal. Set where there are several names. */
  readonly inode?: string;
}

/** The children of a directory that was read anew, which stand together in `found`. */
export interface Run {
  readonly directory: number;
  readonly first: number;
  readonly count: number;
  /** Every name in it was added: none was excluded, skipped or unreadable. */
  readonly complete: boolean;
}

/** Everything that is there is either found or still, never both. */
export interface Walk {
  /** What was looked at, the cell's root first; children after their directory. */
  readonly found: Found[];
  /** 1 for each row of the cache that is as it was and has no other name; all of it in directories that are. */
  readonly still: Uint8Array;
  /** For each that was found, the row at which it stands in a directory that was not read anew; -1 for the others. */
  readonly slots: number[];
  readonly runs: Run[];
  /** Rows of the cache that are no longer there (or changed type). */
  readonly gone: number[];
  readonly flaws: Flaw[];
  /** Directories that were put off. */
  readonly deferred: string[];
}

export interface WalkOptions {
  readonly root: string;
  readonly cache: StatCache | undefined;
  readonly isExcluded: Matcher;
  /** What `isExcluded` was made of: where the cache was written under the same rules, no row of it is excluded. */
  readonly rules?: string;
  /** Directories to leave for a later `resume`: git writes into its own directory while we look elsewhere. */
  readonly defer?: ReadonlySet<string>;
  /** Threads that were called in advance. */
  readonly probers?: Probers | undefined;
}

export interface Walker {
  /** Walks the whole cell, deferred directories excepted. */
  walk(): Walk;
  /** The same with a stop after each directory. */
  steps(): Generator<void>;
  /** What was found so far. */
  readonly result: Walk;
  /** Walks one deferred directory and adds to the same result. */
  resume(path: string): Walk;
  /** Moves what is still among the found: there is more to it than its stat. */
  wake(paths: Iterable<string>): void;
}

const REPLACEMENT = "\ufffd";
const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK } = constants;
const TYPE_OF_MODE = new Map<number, EntryType>([
  [S_IFREG, "file"],
  [S_IFDIR, "directory"],
  [S_IFLNK, "symlink"],
  [S_IFIFO, "fifo"],
]);
const SKIPPED_TYPES = new Map([
  [S_IFSOCK, "a socket"],
  [S_IFCHR, "a character device"],
  [S_IFBLK, "a block device"],
]);
const NO_SLOT = -1;

/** A directory to go into: found, or still and known by its row alone. */
interface Directory {
  readonly path: string;
  readonly row: number;
  readonly unchanged: boolean;
  /** Its place in `found`; -1 when it is still. */
  readonly index: number;
}

export function createWalker(options: WalkOptions): Walker {
  const { root, cache, isExcluded, rules, defer, probers } = options;
  const found: Found[] = [];
  const gone: number[] = [];
  const flaws: Flaw[] = [];
  const deferred: string[] = [];
  const runs: Run[] = [];
  const putOff = new Map<string, number>();
  const still = new Uint8Array(cache?.count ?? 0);
  const slots: number[] = [];
  const result: Walk = { found, still, slots, runs, gone, flaws, deferred };
  const isSameRules = rules !== undefined && rules === cache?.rules;

  const verdicts = cache === undefined ? undefined : probeRows(root, cache, { putOff: defer, probers });

  const fileOf = (path: string) => systemPath(path === "." ? root : `${root}/${path}`);

  /** Numbers above 2^53 run together in a double, and two files would be taken for one. */
  const exactInode = (path: string, stat: Stats): string => {
    if (Number.isSafeInteger(stat.ino) && Number.isSafeInteger(stat.dev)) return `${stat.dev}:${stat.ino}`;
    const exact = lstatSync(fileOf(path), { bigint: true, throwIfNoEntry: false });
    return exact === undefined ? `${stat.dev}:${path}` : `${exact.dev}:${exact.ino}`;
  };

  const look = (path: string, row: number): Found | undefined => {
    // Several names of one file are told apart by their inode, which only a stat of this moment gives.
    if (
      row >= 0 &&
      verdicts?.[row] === UNCHANGED &&
      (cache!.nlinks[row] === 1 || cache!.types[row] === TYPE_CODES.directory)
    )
      return foundStill(cache!, row, path);
    let stat: Stats | undefined;
    try {
      stat = lstatSync(fileOf(path), { throwIfNoEntry: false });
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `looking at ${path} in ${root}`, root);
      if (code !== "ENOTDIR") flaws.push({ path, kind: "skipped", reason: `cannot be looked at (${code})` });
    }
    if (stat === undefined) {
      forget(row);
      return undefined;
    }
    const type = TYPE_OF_MODE.get(stat.mode & S_IFMT);
    if (type === undefined) {
      flaws.push({
        path,
        kind: "skipped",
        reason: SKIPPED_TYPES.get(stat.mode & S_IFMT) ?? "of an unknown type",
      });
      forget(row);
      return undefined;
    }
    let known = row;
    if (known >= 0 && cache!.types[known] !== TYPE_CODES[type]) {
      forget(known);
      known = -1;
    }
    const unchanged = known >= 0 && isUnchanged(cache!, known, stat);
    return {
      path,
      type,
      row: known,
      unchanged,
      size: stat.size,
      nlink: stat.nlink,
      ...(type === "file" && stat.nlink > 1 ? { inode: exactInode(path, stat) } : {}),
    };
  };

  /** Adds to the found; a directory is noted for the descent. */
  const add = (seen: Found, slot: number, below: Directory[]) => {
    if (seen.type === "directory") below.push(asDirectory(seen, found.length));
    found.push(seen);
    slots.push(slot);
  };

  /** A row that is gone takes everything below it along. */
  const forget = (row: number) => {
    if (row < 0) return;
    gone.push(row);
    const first = cache!.firstChild[row]!;
    for (let child = first; child < first + cache!.childCount[row]!; child += 1) forget(child);
  };

  function* enter(top: Directory): Generator<void> {
    const pending = [top];
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      if (defer?.has(directory.path) && !putOff.has(directory.path)) {
        putOff.set(directory.path, directory.index);
        deferred.push(directory.path);
        continue;
      }
      const known = directory.unchanged && cache!.partial[directory.row] === 0;
      const below = known ? rewalk(directory) : readAnew(directory);
      for (let i = below.length - 1; i >= 0; i -= 1) pending.push(below[i]!);
      yield;
    }
  }

  /** The directory itself is unchanged, so its names are those of last time: no readdir. */
  const rewalk = (directory: Directory): Directory[] => {
    const below: Directory[] = [];
    const { types, special, partial, firstChild, childCount } = cache!;
    const first = firstChild[directory.row]!;
    const end = first + childCount[directory.row]!;
    for (let row = first; row < end; row += 1) {
      const isDirectory = types[row] === TYPE_CODES.directory;
      // A directory that is to be read anew must be found: its run refers to it.
      const mayBeStill = special[row] === 0 && partial[row] === 0;
      if (mayBeStill && verdicts?.[row] === UNCHANGED && isSameRules && !isDirectory) {
        still[row] = 1;
        continue;
      }
      const name = nameAt(cache!, row);
      const path = joinPath(directory.path, name);
      if (!isSameRules && isExcluded(path, name)) {
        forget(row);
        continue;
      }
      const seen = look(path, row);
      if (seen === undefined) continue;
      if (mayBeStill && seen.unchanged && !defer?.has(path)) {
        still[row] = 1;
        if (isDirectory) below.push({ path, row, unchanged: true, index: -1 });
      } else add(seen, row, below);
    }
    return below;
  };

  const readAnew = (directory: Directory): Directory[] => {
    const run = found.length;
    let complete = true;
    const known = new Map<string, number>();
    if (directory.row >= 0) {
      const first = cache!.firstChild[directory.row]!;
      for (let row = first; row < first + cache!.childCount[directory.row]!; row += 1)
        known.set(nameAt(cache!, row), row);
    }
    let names: string[];
    try {
      names = readNames(directory.path === "." ? root : `${root}/${directory.path}`);
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `reading the directory ${directory.path} in ${root}`, root);
      if (code !== "ENOENT")
        flaws.push({
          path: directory.path,
          kind: "skipped",
          reason: `the directory cannot be read (${code}), nor what is in it`,
        });
      names = [];
      complete = false;
    }
    const below: Directory[] = [];
    for (const name of names) {
      const path = joinPath(directory.path, name);
      const row = known.get(name) ?? -1;
      if (isExcluded(path, name)) {
        complete = false;
        continue;
      }
      known.delete(name);
      const seen = look(path, row);
      if (seen === undefined) complete = false;
      else add(seen, NO_SLOT, below);
    }
    for (const row of known.values()) forget(row);
    runs.push({ directory: directory.index, first: run, count: found.length - run, complete });
    return below;
  };

  function* steps(): Generator<void> {
    const top = look(".", cache === undefined ? -1 : 0);
    if (top === undefined) return;
    found.push(top);
    slots.push(top.row);
    yield* enter(asDirectory(top, 0));
  }

  return {
    result,
    steps,
    walk() {
      for (const _ of steps());
      return result;
    },
    resume(path) {
      const index = putOff.get(path);
      if (index === undefined) return result;
      // Looked at once more: it has changed meanwhile.
      const before = found[index]!;
      const now = look(path, before.row);
      if (now?.type === "directory") {
        found[index] = now;
        for (const _ of enter(asDirectory(now, index)));
      } else {
        // Gone or something else by now: what is packed will say so, and its old names are not trusted.
        found[index] = { ...before, unchanged: false, row: -1 };
        runs.push({ directory: index, first: found.length, count: 0, complete: false });
      }
      return result;
    },
    wake(paths) {
      for (const path of paths) {
        const row = cache === undefined ? -1 : findRow(cache, path);
        if (row < 0 || still[row] !== 1) continue;
        still[row] = 0;
        found.push(foundStill(cache!, row, path));
        slots.push(row);
      }
    },
  };
}

function asDirectory({ path, row, unchanged }: Found, index: number): Directory {
  return { path, row, unchanged, index };
}

/** A machine that is out of descriptors or memory would make an empty cell look saved: that ends the walk. */
export function refuseExhaustion(error: unknown, doing: string, directory: string): void {
  if (EXHAUSTED.has(systemErrorCode(error) ?? "")) throw asLazarusError(error, doing, directory);
}

const EXHAUSTED: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

/** Names as strings, exact even when they are not UTF-8. */
function readNames(directory: string): string[] {
  const names = readdirSync(systemPath(directory));
  if (!names.some((name) => name.includes(REPLACEMENT))) return names;
  return readdirSync(encodePath(directory), { encoding: "buffer" }).map(decodePath);
}
