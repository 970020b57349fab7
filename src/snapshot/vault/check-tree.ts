// Whether a tree can be restored: every entry is below a directory, and the bytes of every file are inside its layer. One
// function for the gate that a new checkpoint passes, for verify and for restore (INV-1). It looks only at what the given
// layers change; the tree below them has passed the same check. Pure.
import type { EntryType } from "../model/entry.ts";
import { parentPath } from "../model/path-bytes.ts";
import type { Member, Toc, TocVisitor } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";

/** An entry that a restore would refuse. */
export interface TreeFault {
  readonly path: string;
  readonly problem: string;
}

/** A tree that is known to be restorable. */
export interface Tree {
  typeOf(path: string): EntryType | undefined;
  /** Number of entries directly below a path. */
  childCount(path: string): number;
  /** Their paths. Slow; only used to name faults. */
  children(path: string): Iterable<string>;
  /** Size of a file without holes; undefined for everything else. */
  sizeOf(path: string): number | undefined;
}

export const EMPTY_TREE: Tree = {
  typeOf: () => undefined,
  childCount: () => 0,
  children: () => [],
  sizeOf: () => undefined,
};

/** What the layers change, in order of their application: the last entry of each path, undefined where it is removed. */
export type TreeChanges = ReadonlyMap<string, TocEntry | undefined>;

/** SHA-256 of nothing. */
export const EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const SHA256_LENGTH = 64;

export function mergeTables(tables: readonly Pick<Toc, "entries" | "removed">[]): TreeChanges {
  const changes = new Map<string, TocEntry | undefined>();
  for (const { entries, removed } of tables) {
    for (const path of removed) changes.set(path, undefined);
    for (const entry of entries) changes.set(entry.path, entry);
  }
  return changes;
}

/** The faults of the layers with these tables on top of `below`. With `only`, those of these paths. */
export function findFaults(below: Tree, tables: readonly Toc[], only?: ReadonlySet<string>): TreeFault[] {
  const changes = mergeTables(tables);
  const typeOf = (path: string) => (changes.has(path) ? changes.get(path)?.type : below.typeOf(path));
  const faults: TreeFault[] = [];
  /** No longer directories: how many of their entries the layers change. */
  const replaced = new Map<string, number>();
  let lastParent = "";
  for (const [path, entry] of changes) {
    if (entry?.type !== "directory" && path !== "." && below.childCount(path) > 0) replaced.set(path, 0);
    const parent = parentPath(path);
    if (entry === undefined || (parent === lastParent && path !== ".")) continue;
    const type = path === "." ? entry.type : parent === "." ? "directory" : typeOf(parent);
    if (type === "directory") lastParent = parent;
    else if (only?.has(path) ?? true) faults.push({ path, problem: `is below ${describe(type)}` });
  }
  if (replaced.size > 0) faults.push(...findLeftBehind(below, changes, replaced));
  for (const table of tables) faults.push(...misplacedBytes(table, only));
  return [...faults, ...findBroken(below, tables, only)];
}

export const NOT_CONTINUABLE = "continues a file that the layers below do not have";

/** Whether a file can be continued after this many bytes: exactly that many are stored, without holes. */
export function isContinuable(
  { type, size, extents }: Pick<TocEntry, "type" | "size" | "extents">,
  after: number,
): boolean {
  return type === "file" && size === after && extents === undefined;
}

/** Continued files whose beginning is not below them. */
function findBroken(below: Tree, tables: readonly Toc[], only: ReadonlySet<string> | undefined): TreeFault[] {
  const faults: TreeFault[] = [];
  const continued = new Set(
    tables.flatMap(({ entries }) =>
      entries.filter(({ after }) => after !== undefined).map(({ path }) => path),
    ),
  );
  if (continued.size === 0) return faults;
  const versions = new Map<string, TocEntry | undefined>();
  for (const { entries, removed } of tables) {
    const rows = entries.filter(({ path }) => continued.has(path));
    for (const { path, after } of rows) {
      if (after === undefined || !(only?.has(path) ?? true)) continue;
      const version = versions.get(path);
      const isBroken = versions.has(path)
        ? version === undefined || !isContinuable(version, after)
        : below.sizeOf(path) !== after;
      if (isBroken) faults.push({ path, problem: NOT_CONTINUABLE });
    }
    for (const path of removed) if (continued.has(path)) versions.set(path, undefined);
    for (const entry of rows) versions.set(entry.path, entry);
  }
  return faults;
}

/** Entries that stay below a path that is no longer a directory. */
function findLeftBehind(below: Tree, changes: TreeChanges, replaced: Map<string, number>): TreeFault[] {
  for (const path of changes.keys()) {
    const known = replaced.get(parentPath(path));
    if (known !== undefined && below.typeOf(path) !== undefined) replaced.set(parentPath(path), known + 1);
  }
  const faults: TreeFault[] = [];
  for (const [path, changed] of replaced) {
    if (below.childCount(path) === changed) continue;
    const problem = `is below ${describe(changes.get(path)?.type)}`;
    for (const child of below.children(path)) if (!changes.has(child)) faults.push({ path: child, problem });
  }
  return faults;
}

function describe(type: EntryType | undefined): string {
  return type === undefined ? "a missing directory" : `a ${type}`;
}

function misplacedBytes({ entries, members }: Toc, only: ReadonlySet<string> | undefined): TreeFault[] {
  const faults: TreeFault[] = [];
  const end = rawLengthOf(members);
  for (const entry of entries) {
    const { path, type, at, length = 0 } = entry;
    if (type !== "file" || !(only?.has(path) ?? true)) continue;
    const problem =
      problemOf(entry) ??
      (at !== undefined && at + length > end ? "extends beyond the end of its layer" : undefined);
    if (problem !== undefined) faults.push({ path, problem });
  }
  return faults;
}

/** What is wrong with the row of a file. */
function problemOf({ sha256, at }: TocEntry): string | undefined {
  if (sha256.length !== SHA256_LENGTH) return "has no digest";
  return at === undefined && sha256 !== EMPTY_SHA256 ? "has no content" : undefined;
}

function rawLengthOf(members: readonly Member[]): number {
  return members.reduce((sum, { raw }) => sum + raw, 0);
}

/** Takes the tables of a whole tree, row by row. */
export interface TreeScan extends TocVisitor {
  /** To be called after each table. */
  endTable(members: readonly Member[]): void;
  /** Whether the tables list exactly the expected entries, and no fault was seen. If not, `findFaults` says why. */
  isSound(): boolean;
}

/** A quick check of a tree with one entry per path, as a first checkpoint makes it: keeps none of its rows. */
export function scanTree(
  expected: ReadonlyMap<string, { readonly entry: Pick<TocEntry, "type" | "sha256"> }>,
): TreeScan {
  let isSound = true;
  let count = 0;
  let end = 0;
  let lastParent = "";
  const isDirectory = (path: string) => expected.get(path)?.entry.type === "directory";
  return {
    entry(entry) {
      const { path, type, sha256, at, length = 0, after } = entry;
      if (after !== undefined) isSound = false;
      const packed = expected.get(path)?.entry;
      count += 1;
      if (packed?.type !== type || packed.sha256 !== sha256) isSound = false;
      const parent = parentPath(path);
      if (path === "." || (parent !== lastParent && parent !== "."))
        isSound &&= isDirectory(path === "." ? path : parent);
      lastParent = parent;
      if (type === "file" && problemOf(entry) !== undefined) isSound = false;
      if (at !== undefined) end = Math.max(end, at + length);
    },
    removed() {
      isSound = false;
    },
    endTable(members) {
      if (end > rawLengthOf(members)) isSound = false;
      end = 0;
    },
    isSound: () => isSound && count === expected.size,
  };
}

/** A tree that grows layer by layer. */
export interface GrowingTree extends Tree {
  apply(table: Toc): void;
}

export function createTree(): GrowingTree {
  const types = new Map<string, EntryType>();
  const counts = new Map<string, number>();
  const sizes = new Map<string, number>();
  const count = (path: string, by: number) => {
    if (path !== ".") counts.set(parentPath(path), (counts.get(parentPath(path)) ?? 0) + by);
  };
  return {
    typeOf: (path) => types.get(path),
    childCount: (path) => counts.get(path) ?? 0,
    children: (path) => [...types.keys()].filter((each) => each !== "." && parentPath(each) === path),
    sizeOf: (path) => sizes.get(path),
    apply({ entries, removed }) {
      for (const path of removed) {
        if (types.delete(path)) count(path, -1);
        sizes.delete(path);
      }
      for (const { path, type, size, extents } of entries) {
        if (!types.has(path)) count(path, 1);
        types.set(path, type);
        if (type === "file" && extents === undefined) sizes.set(path, size);
        else sizes.delete(path);
      }
    },
  };
}
