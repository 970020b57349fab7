// Rows with changes on top of them: what a checkpoint would hold. The stat store is only written after the index, so a
// capture keeps its changes here. Without a store below, the changes are all the rows, as for a first checkpoint.
import type { Entry } from "../model/entry.ts";
import { parentPath } from "../model/path-bytes.ts";
import { baseName, createUnknownRow, type EntryRow, type StatRow } from "./stat-row.ts";
import { addToTotals, NO_ROWS, pathsBelow, type StatRows, type Totals } from "./stat-rows.ts";

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
  /** Indexes of the changed paths, by directory and by inode, made when they are first needed. */
  private byDirectory: Map<string, string[]> | undefined;
  private byInode: Map<number, string[]> | undefined;

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
    this.byDirectory ??= groupPaths(this.changes, (each) => (each === "." ? undefined : parentPath(each)));
    const changed = this.byDirectory.get(path);
    if (changed === undefined) return below;
    const names = new Set(below.length === 0 ? [] : changed.map(baseName));
    const rows = below.filter(({ name }) => !names.has(name));
    for (const each of changed) {
      const row = this.changes.get(each);
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  namesOf(inode: number): string[] {
    const below = this.base.namesOf(inode).filter((path) => !this.changes.has(path));
    this.byInode ??= groupPaths(this.changes, (_, row) => row?.ino);
    return [...below, ...(this.byInode.get(inode) ?? [])];
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

  linked(): string[] {
    const hasOthers = ({ type, nlink, ino }: EntryRow) => type === "file" && nlink > this.namesOf(ino).length;
    return this.select(this.base.linked(), hasOthers);
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
    this.byDirectory = undefined;
    this.byInode = undefined;
  }

  private count(row: EntryRow, by: 1 | -1): void {
    this.current = addToTotals(this.current, row, by);
    const group = row.extra?.group;
    if (group !== undefined) this.groups.set(group, (this.groups.get(group) ?? 0) + by);
  }
}

/** Groups the paths of rows by a key; rows without the key are omitted. */
function groupPaths<K>(
  rows: ReadonlyMap<string, EntryRow | undefined>,
  keyOf: (path: string, row: EntryRow | undefined) => K | undefined,
): Map<K, string[]> {
  const groups = new Map<K, string[]>();
  for (const [path, row] of rows) {
    const key = keyOf(path, row);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [path]);
    else group.push(path);
  }
  return groups;
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
