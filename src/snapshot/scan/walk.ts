// Walks a cell and compares it with the stat cache. A directory whose own stat is unchanged is not read again: its names
// are known, unless some were left out of the last checkpoint. An unchanged path costs one lstat, taken beforehand by
// `probeRows`, and no object: only its cache row is marked. Nothing but directories is opened.
// Live protection replaces the stat cache and this comparison.
import { constants, lstatSync, type Stats } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { diskPath, rootOf, type TreeRoot } from "../model/cell-tree.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { joinPath, systemPath } from "../model/path-bytes.ts";
import type { Matcher } from "../path-patterns.ts";
import type { Found, Run, Walk } from "./found.ts";
import { listTreeNames } from "./list-names.ts";
import { nameAt } from "./name-table.ts";
import { probeRows, UNCHANGED } from "./probe.ts";
import { findRow, isUnchanged, type StatCache, TYPE_CODES } from "./stat-cache.ts";
import { rowAsFound } from "./unchanged-rows.ts";

export interface WalkOptions {
  readonly root: TreeRoot;
  readonly cache: StatCache | undefined;
  readonly isExcluded: Matcher;
  /** Digest of the exclude patterns: if the cache was written under the same ones, none of its rows is excluded. */
  readonly rules?: string;
  /** Directories to leave for a later `resume`: git writes into its own directory while the rest is walked. */
  readonly defer?: ReadonlySet<string>;
  /** Look only for new names in these directories of the cache; everything else counts as unchanged. */
  readonly within?: readonly string[];
}

export interface Walker {
  /** Walks the whole cell, deferred directories excepted. */
  walk(): Walk;
  /** Walks one deferred directory and adds to the same result. */
  resume(path: string): Walk;
  /** Moves unchanged paths to `found`: their content may have changed although their stat did not. */
  reveal(paths: Iterable<string>): void;
}

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

/** A directory to descend into. */
interface Directory {
  readonly path: string;
  readonly row: number;
  readonly unchanged: boolean;
  /** Its index in `found`; -1 when it is only marked in `unchangedRows`. */
  readonly index: number;
}

export function createWalker(options: WalkOptions): Walker {
  return new CellWalker(options);
}

class CellWalker implements Walker {
  private readonly root: TreeRoot;
  private readonly cache: StatCache | undefined;
  private readonly isExcluded: Matcher;
  private readonly isSameRules: boolean;
  private readonly defer: ReadonlySet<string> | undefined;
  private readonly within: readonly string[] | undefined;
  /** One verdict of `probeRows` per cache row. */
  private readonly verdicts: Uint8Array | undefined;
  /** Index in `found` of each deferred directory. */
  private readonly deferredAt = new Map<string, number>();
  private readonly found: Found[] = [];
  private readonly slots: number[] = [];
  private readonly runs: Run[] = [];
  private readonly gone: number[] = [];
  private readonly flaws: Flaw[] = [];
  private readonly deferred: string[] = [];
  private readonly unchangedRows: Uint8Array;
  private readonly result: Walk;
  /** Open during a descent: a directory that becomes a link is not followed. */
  private tree: OpenTree | undefined;

  constructor({ root, cache, isExcluded, rules, defer, within }: WalkOptions) {
    this.root = root;
    this.cache = cache;
    this.isExcluded = isExcluded;
    this.isSameRules = rules !== undefined && rules === cache?.rules;
    this.defer = defer;
    this.within = within;
    this.unchangedRows = new Uint8Array(cache?.count ?? 0);
    const { found, slots, runs, gone, flaws, deferred, unchangedRows } = this;
    this.result = { found, slots, runs, gone, flaws, deferred, unchangedRows };
    const isProbed = cache !== undefined && within === undefined;
    this.verdicts = isProbed ? probeRows(root, cache, { skip: defer }) : undefined;
  }

  walk(): Walk {
    if (this.within !== undefined) return this.walkWithin(this.within);
    const top = this.inspect(".", this.cache === undefined ? -1 : 0);
    if (top === undefined) return this.result;
    this.found.push(top);
    this.slots.push(top.row);
    this.descend(asDirectory(top, 0));
    return this.result;
  }

  private walkWithin(directories: readonly string[]): Walk {
    const cache = this.cache!;
    this.unchangedRows.fill(1);
    for (const path of directories) {
      const row = findRow(cache, path);
      const seen = row < 0 ? undefined : this.inspect(path, row);
      if (seen?.type !== "directory") continue;
      this.unmark(row);
      this.slots.push(row);
      this.found.push(seen);
      this.descend(asDirectory(seen, this.found.length - 1));
    }
    return this.result;
  }

  /** The row and every row below it are looked at. */
  private unmark(row: number): void {
    this.unchangedRows[row] = 0;
    const first = this.cache!.firstChild[row]!;
    for (let child = first; child < first + this.cache!.childCount[row]!; child += 1) this.unmark(child);
  }

  resume(path: string): Walk {
    const index = this.deferredAt.get(path);
    if (index === undefined) return this.result;
    const before = this.found[index]!;
    const now = this.inspect(path, before.row);
    if (now?.type === "directory") {
      this.found[index] = now;
      this.descend(asDirectory(now, index));
    } else {
      // Gone or no longer a directory: packing it reports that, and the names it had are not trusted.
      this.found[index] = { ...before, unchanged: false, row: -1 };
      this.runs.push({ directory: index, first: this.found.length, count: 0, complete: false });
    }
    return this.result;
  }

  reveal(paths: Iterable<string>): void {
    const { cache, unchangedRows } = this;
    for (const path of paths) {
      const row = cache === undefined ? -1 : findRow(cache, path);
      if (row < 0 || unchangedRows[row] !== 1) continue;
      unchangedRows[row] = 0;
      this.found.push(rowAsFound(cache!, row, path));
      this.slots.push(row);
    }
  }

  private descend(top: Directory): void {
    using tree = new OpenTree(this.root);
    this.tree = tree;
    const pending = [top];
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      if (this.defer?.has(directory.path) && !this.deferredAt.has(directory.path)) {
        this.deferredAt.set(directory.path, directory.index);
        this.deferred.push(directory.path);
        continue;
      }
      // The names in the root do not tell whether there is a worktree elsewhere.
      const isSplit = directory.path === "." && typeof this.root !== "string";
      const isKnown = directory.unchanged && this.cache!.partial[directory.row] === 0 && !isSplit;
      const below = isKnown ? this.checkKnownNames(directory) : this.readNames(directory);
      for (let i = below.length - 1; i >= 0; i -= 1) pending.push(below[i]!);
    }
  }

  /** The directory is unchanged, so its names are those of the cache: no readdir. Returns its subdirectories. */
  private checkKnownNames(directory: Directory): Directory[] {
    const below: Directory[] = [];
    const cache = this.cache!;
    const { types, special, partial, firstChild, childCount } = cache;
    const first = firstChild[directory.row]!;
    const end = first + childCount[directory.row]!;
    for (let row = first; row < end; row += 1) {
      const isDirectory = types[row] === TYPE_CODES.directory;
      // A partial directory will be read again, and its run refers to an index in `found`.
      const isPlain = special[row] === 0 && partial[row] === 0;
      if (isPlain && this.verdicts?.[row] === UNCHANGED && this.isSameRules && !isDirectory) {
        this.unchangedRows[row] = 1;
        continue;
      }
      const name = nameAt(cache, row);
      const path = joinPath(directory.path, name);
      if (!this.isSameRules && this.isExcluded(path, name)) {
        this.forget(row);
        continue;
      }
      const seen = this.inspect(path, row);
      if (seen === undefined) continue;
      if (isPlain && seen.unchanged && !this.defer?.has(path)) {
        this.unchangedRows[row] = 1;
        if (isDirectory) below.push({ path, row, unchanged: true, index: -1 });
      } else this.add(seen, row, below);
    }
    return below;
  }

  /** Reads the directory's names and compares them with the cache. Returns its subdirectories. */
  private readNames(directory: Directory): Directory[] {
    const first = this.found.length;
    const known = this.knownNames(directory);
    const names = this.listNames(directory);
    let complete = names !== undefined;
    const below: Directory[] = [];
    for (const name of names ?? []) {
      const path = joinPath(directory.path, name);
      const row = known.get(name) ?? -1;
      if (this.isExcluded(path, name)) {
        complete = false;
        continue;
      }
      known.delete(name);
      const seen = this.inspect(path, row);
      if (seen === undefined) complete = false;
      else this.add(seen, NO_SLOT, below);
    }
    for (const row of known.values()) this.forget(row);
    this.runs.push({ directory: directory.index, first, count: this.found.length - first, complete });
    return below;
  }

  /** The rows of a directory's children by name. */
  private knownNames({ row: directory }: Directory): Map<string, number> {
    const known = new Map<string, number>();
    if (directory < 0) return known;
    const first = this.cache!.firstChild[directory]!;
    for (let row = first; row < first + this.cache!.childCount[directory]!; row += 1)
      known.set(nameAt(this.cache!, row), row);
    return known;
  }

  /** Undefined when the directory cannot be read. */
  private listNames({ path }: Directory): string[] | undefined {
    try {
      return listTreeNames(this.root, this.tree!, path);
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `reading the directory ${path} in ${rootOf(this.root)}`, rootOf(this.root));
      const reason = `the directory and its contents cannot be read (${code})`;
      if (code !== "ENOENT") this.flaws.push({ path, kind: "skipped", reason });
      return undefined;
    }
  }

  /** Undefined when the path is gone or cannot be captured. */
  private inspect(path: string, row: number): Found | undefined {
    const { cache, verdicts } = this;
    // Its other names may be elsewhere, and none of them has changed.
    if (this.within !== undefined && row >= 0 && cache!.types[row] !== TYPE_CODES.directory)
      return { ...rowAsFound(cache!, row, path), nlink: 1 };
    // Names of one file are matched by inode, which only a fresh stat gives.
    if (
      row >= 0 &&
      verdicts?.[row] === UNCHANGED &&
      (cache!.nlinks[row] === 1 || cache!.types[row] === TYPE_CODES.directory)
    )
      return rowAsFound(cache!, row, path);
    const stat = this.stat(path);
    const type = stat === undefined ? undefined : TYPE_OF_MODE.get(stat.mode & S_IFMT);
    if (stat === undefined || type === undefined) {
      const reason =
        stat === undefined ? undefined : (SKIPPED_TYPES.get(stat.mode & S_IFMT) ?? "of an unknown type");
      if (reason !== undefined) this.flaws.push({ path, kind: "skipped", reason });
      this.forget(row);
      return undefined;
    }
    const isSameType = row >= 0 && cache!.types[row] === TYPE_CODES[type];
    if (!isSameType) this.forget(row);
    return {
      path,
      type,
      row: isSameType ? row : -1,
      unchanged: isSameType && isUnchanged(cache!, row, stat),
      size: stat.size,
      nlink: stat.nlink,
      ...(type === "file" && stat.nlink > 1 ? { inode: this.exactInode(path, stat) } : {}),
    };
  }

  private stat(path: string): Stats | undefined {
    try {
      return lstatSync(this.fileOf(path), { throwIfNoEntry: false });
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `reading the stat of ${path} in ${rootOf(this.root)}`, rootOf(this.root));
      if (code !== "ENOTDIR")
        this.flaws.push({ path, kind: "skipped", reason: `its stat cannot be read (${code})` });
      return undefined;
    }
  }

  /** Inodes above 2^53 are not exact as doubles, and two files would be taken for one. */
  private exactInode(path: string, stat: Stats): string {
    if (Number.isSafeInteger(stat.ino) && Number.isSafeInteger(stat.dev)) return `${stat.dev}:${stat.ino}`;
    const exact = lstatSync(this.fileOf(path), { bigint: true, throwIfNoEntry: false });
    return exact === undefined ? `${stat.dev}:${path}` : `${exact.dev}:${exact.ino}`;
  }

  private fileOf(path: string): string | Buffer {
    return systemPath(diskPath(this.root, path));
  }

  private add(seen: Found, slot: number, below: Directory[]): void {
    if (seen.type === "directory") below.push(asDirectory(seen, this.found.length));
    this.found.push(seen);
    this.slots.push(slot);
  }

  /** Marks a row and every row below it as gone. */
  private forget(row: number): void {
    if (row < 0) return;
    this.gone.push(row);
    const first = this.cache!.firstChild[row]!;
    for (let child = first; child < first + this.cache!.childCount[row]!; child += 1) this.forget(child);
  }
}

function asDirectory({ path, row, unchanged }: Found, index: number): Directory {
  return { path, row, unchanged, index };
}

/** Whether a checkpoint can hold a path of this type. */
export function isCapturable({ mode }: Stats): boolean {
  return TYPE_OF_MODE.has(mode & S_IFMT);
}
