// The rows of a checkpoint, by path, for every part of a capture. They come from the stat store, and a capture adds its
// changes on top (`ChangedRows`). No query is O(cell) unless its comment says so.
import type { EntryType } from "../model/entry.ts";
import { joinPath } from "../model/path-bytes.ts";
import type { Tree } from "../vault/check-tree.ts";
import type { EntryRow, StatRow } from "./stat-row.ts";

/** Totals of the rows. */
export interface Totals {
  readonly files: number;
  readonly directories: number;
  readonly others: number;
  /** Size of all files. */
  readonly bytes: number;
}

export const NO_TOTALS: Totals = { files: 0, directories: 0, others: 0, bytes: 0 };

export interface StatRows {
  /** Digest of the exclude patterns, which no row matches; "" where that is not known. */
  readonly rules: string;
  readonly totals: Totals;
  /** Paths that exist and could not be captured: every survey examines them again. */
  readonly skipped: ReadonlySet<string>;
  stat(path: string): StatRow | undefined;
  entry(path: string): EntryRow | undefined;
  /** The rows directly below a directory. */
  children(path: string): readonly StatRow[];
  /** The paths of rows with this inode, on any file system. */
  namesOf(inode: number): string[];
  /** How many rows have this hard-link group. */
  groupSize(group: string): number;
  /** The paths of racy rows. */
  racy(): string[];
  fifos(): string[];
  /** The paths of files that have names outside the cell. */
  linked(): string[];
  /** The paths of all directories. O(cell). */
  directories(): string[];
}

export const NO_ROWS: StatRows = {
  rules: "",
  totals: NO_TOTALS,
  skipped: new Set(),
  stat: () => undefined,
  entry: () => undefined,
  children: () => [],
  namesOf: () => [],
  groupSize: () => 0,
  racy: () => [],
  fifos: () => [],
  linked: () => [],
  directories: () => [],
};

/** Number of rows, the cell itself included. */
export function countRows({ totals }: StatRows): number {
  return totals.files + totals.directories + totals.others;
}

export function addToTotals(totals: Totals, { type, size }: StatRow, by: 1 | -1): Totals {
  const { files, directories, others, bytes } = totals;
  if (type === "file") return { files: files + by, directories, others, bytes: bytes + by * size };
  if (type === "directory") return { files, directories: directories + by, others, bytes };
  return { files, directories, others: others + by, bytes };
}

/** Rows as the tree that a new layer is checked against. */
export interface RowTree extends Tree {
  readonly count: number;
  /** Every path below a directory. */
  allBelow(path: string): string[];
}

export function treeOf(rows: StatRows): RowTree {
  return {
    count: countRows(rows),
    typeOf: (path): EntryType | undefined => rows.stat(path)?.type,
    childCount: (path) => rows.children(path).length,
    children: (path) => rows.children(path).map(({ name }) => joinPath(path, name)),
    sizeOf(path) {
      const row = rows.entry(path);
      return row?.type === "file" && row.extra?.extents === undefined ? row.size : undefined;
    },
    allBelow: (path) => pathsBelow(rows, path),
  };
}

/** Every path below a directory, each directory before its contents. */
export function pathsBelow(rows: StatRows, path: string): string[] {
  const found: string[] = [];
  const visit = (directory: string) => {
    for (const { name, type } of rows.children(directory)) {
      const child = joinPath(directory, name);
      found.push(child);
      if (type === "directory") visit(child);
    }
  };
  visit(path);
  return found;
}
