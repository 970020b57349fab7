// Rows with changes on top of them: what a checkpoint would hold. The stat store is only written after the index, so a
// capture keeps its changes here. On top of nothing, they are all rows: of a first checkpoint, or of one whose store was lost.
import type { Entry } from "../model/entry.ts";
import { parentPath } from "../model/path-bytes.ts";
import { baseName, createUnknownRow, type EntryRow, type StatRow } from "./stat-row.ts";
import { addToTotals, NO_ROWS, pathsBelow, type StatRows, type Totals } from "./stat-rows.ts";

/** Indexes of the changes, made when they are first needed. */
interface Indexes {
  readonly children: ReadonlyMap<string, ReadonlyMap<string, EntryRow | undefined>>;
  readonly inodes: ReadonlyMap<number, readonly string[]>;
}

export class ChangedRows implements StatRows {
  /** What is below the changes: a store, or NO_ROWS. */
  readonly base: StatRows;
  /** The new row of each changed path; undefined where it was removed. */
  readonly changes: Map<string, EntryRow | undefined>;
  readonly rules: string;
  skipped: ReadonlySet<string>;
  private current: Totals;
  /** By how much the changes enlarge each hard-link group. */
  private readonly groups: Map<string, number>;
  private indexes: Indexes | undefined;

  constructor(below: StatRows, rules = below.rules) {
    this.base = below instanceof ChangedRows ? below.base : below;
    this.changes = new Map(below instanceof ChangedRows ? below.changes : []);
    this.groups = new Map(below instanceof ChangedRows ? below.groups : []);
    this.rules = rules;
    this.skipped = below.skipped;
    this.current = below.totals;
  }

  get totals(): Totals {
    return this.current;
  }

  /** Whether the store has to be written. */
  get isNew(): boolean {
    const { base, skipped } = this;
    if (base === NO_ROWS || this.changes.size > 0 || this.rules !== base.rules) return true;
    return skipped.size !== base.skipped.size || skipped.difference(base.skipped).size > 0;
  }

  set(path: string, row: EntryRow): void {
    this.replace(path, row);
  }

  remove(path: string): void {
    this.replace(path, undefined);
  }

  /** Removes the path with everything below it. */
  removeTree(path: string): void {
    for (const below of pathsBelow(this, path)) this.remove(below);
    this.remove(path);
  }

  stat(path: string): StatRow | undefined {
    return this.changes.has(path) ? this.changes.get(path) : this.base.stat(path);
  }

  entry(path: string): EntryRow | undefined {
    return this.changes.has(path) ? this.changes.get(path) : this.base.entry(path);
  }

  children(path: string): readonly StatRow[] {
    const below = this.base.children(path);
    const changed = this.index().children.get(path);
    if (changed === undefined) return below;
    const rows = below.filter(({ name }) => !changed.has(name));
    for (const row of changed.values()) if (row !== undefined) rows.push(row);
    return rows;
  }

  namesOf(inode: number): string[] {
    const below = this.base.namesOf(inode).filter((path) => !this.changes.has(path));
    return [...below, ...(this.index().inodes.get(inode) ?? [])];
  }

  groupSize(group: string): number {
    return this.base.groupSize(group) + (this.groups.get(group) ?? 0);
  }

  racy(): string[] {
    return this.select(this.base.racy(), ({ isRacy }) => isRacy);
  }

  fifos(): string[] {
    return this.select(this.base.fifos(), ({ type }) => type === "fifo");
  }

  directories(): string[] {
    return this.select(this.base.directories(), ({ type }) => type === "directory");
  }

  private select(below: readonly string[], isWanted: (row: EntryRow) => boolean): string[] {
    const paths = below.filter((path) => !this.changes.has(path));
    for (const [path, row] of this.changes) if (row !== undefined && isWanted(row)) paths.push(path);
    return paths;
  }

  private replace(path: string, row: EntryRow | undefined): void {
    const before = this.entry(path);
    if (before === undefined && row === undefined) return;
    if (before !== undefined) this.count(before, -1);
    if (row !== undefined) this.count(row, 1);
    this.changes.set(path, row);
    this.indexes = undefined;
  }

  private count(row: EntryRow, by: 1 | -1): void {
    this.current = addToTotals(this.current, row, by);
    const group = row.extra?.group;
    if (group !== undefined) this.groups.set(group, (this.groups.get(group) ?? 0) + by);
  }

  private index(): Indexes {
    if (this.indexes !== undefined) return this.indexes;
    const children = new Map<string, Map<string, EntryRow | undefined>>();
    const inodes = new Map<number, string[]>();
    for (const [path, row] of this.changes) {
      if (path !== ".") entryIn(children, parentPath(path), () => new Map()).set(baseName(path), row);
      if (row !== undefined) entryIn(inodes, row.ino, () => []).push(path);
    }
    this.indexes = { children, inodes };
    return this.indexes;
  }
}

function entryIn<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

/** The rows of a checkpoint whose store was lost: every file will be hashed. */
export function rowsFromListing(
  listing: ReadonlyMap<string, Omit<Entry, "location">>,
  skipped: Iterable<string> = [],
): ChangedRows {
  const rows = new ChangedRows(NO_ROWS);
  for (const [path, entry] of listing) rows.set(path, createUnknownRow(entry));
  if (!listing.has(".")) rows.set(".", createUnknownRow(ROOT));
  rows.skipped = new Set(skipped);
  return rows;
}

const ROOT: Omit<Entry, "location"> = {
  path: ".",
  type: "directory",
  mode: 0o700,
  uid: 0,
  gid: 0,
  mtimeSec: 0,
  mtimeNs: 0,
  size: 0,
  sha256: "",
};
