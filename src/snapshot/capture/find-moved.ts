// Finds what moved while a cell was captured (INV-6): paths that existed before the capture and whose file or directory is in
// the checkpoint under no name, and files that it holds under two names. A directory that has not changed since the walk
// began had no name moved in or out, so only changed ones are read again, and only if anything indicates a change.
import { lstatSync, type Stats } from "node:fs";
import { diskPath, isInWorktree, type TreeRoot } from "../model/cell-tree.ts";
import type { Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { joinPath, parentPath, systemPath } from "../model/path-bytes.ts";
import { isSidecar } from "../model/sqlite-files.ts";
import type { Stored } from "../pack/layers.ts";
import { TICK_MS } from "../pack/torn.ts";
import type { Matcher } from "../path-patterns.ts";
import type { Survey } from "../scan/found.ts";
import { isCapturable } from "../scan/inspect.ts";
import { listTreeNames } from "../scan/list-names.ts";
import type { StatRow } from "../scan/stat-row.ts";
import type { StatRows } from "../scan/stat-rows.ts";

export interface FindMovedInput {
  readonly root: TreeRoot;
  readonly survey: Survey;
  readonly stored: Stored;
  /** What the checkpoint would hold. */
  readonly rows: StatRows;
  readonly isExcluded: Matcher;
  /** When the first walk of the capture began: what is younger need not be in the checkpoint. */
  readonly captureMs: number;
}

/** What moved, as the flaws that the checkpoint has if it is published like this. */
export function findMoved(input: FindMovedInput): Flaw[] {
  const { root, rows, survey } = input;
  // A first walk has read every directory: checking for changes first would take the stat of each twice.
  const isFirst = survey.rows.totals.directories === 0;
  if (!isFirst && !mayHaveMoves(input)) return [];
  using tree = new OpenTree(root);
  const seen: Seen = { tree, unmatched: [], gone: new Map() };
  for (const path of rows.directories()) {
    const stat = statOf(root, path);
    if (stat?.isDirectory() && stat.ctimeMs >= survey.namesSinceMs) compareNames(input, path, seen);
  }
  return toFlaws(input, seen);
}

/** An old path that the checkpoint does not hold, or of which it holds another file. */
interface UnmatchedPath {
  readonly path: string;
  /** See `inodeKey`. */
  readonly inode: number;
  readonly isDirectory: boolean;
}

interface Seen {
  readonly tree: OpenTree;
  readonly unmatched: UnmatchedPath[];
  /** Names of the checkpoint that are gone, by inode. */
  readonly gone: Map<number, string>;
}

/** A directory that the walk read, or that lost a name, has changed since the walk began, or is gone itself. */
function mayHaveMoves({ root, survey, stored }: FindMovedInput): boolean {
  const directories = new Set(survey.walk.read.keys());
  for (const path of survey.removed) directories.add(parentPath(path));
  for (const { path } of stored.missed) directories.add(parentPath(path));
  for (const path of directories) {
    const stat = statOf(root, path);
    if (stat === undefined || stat.ctimeMs >= survey.namesSinceMs) return true;
  }
  return false;
}

/** Compares the names in a directory with those in the checkpoint. */
function compareNames(
  { root, rows, isExcluded, captureMs, survey }: FindMovedInput,
  path: string,
  { tree, unmatched, gone }: Seen,
): void {
  const known = new Map<string, StatRow>(rows.children(path).map((row) => [row.name, row]));
  for (const name of namesIn(root, tree, path)) {
    const child = joinPath(path, name);
    const row = known.get(name);
    known.delete(name);
    // A sidecar is part of the copy of its database.
    if (isExcluded(child, name) || (isSidecar(name) && survey.sources.size > 0)) continue;
    const stat = statIn(tree, child);
    if (stat === undefined || !isCapturable(stat) || row?.ino === stat.ino) continue;
    // Without a creation time every path counts as old.
    if (stat.birthtimeMs < captureMs + TICK_MS)
      unmatched.push({ path: child, inode: inodeKey(root, path, stat.ino), isDirectory: stat.isDirectory() });
  }
  for (const [name, row] of known)
    if (row.nlink === 1 || row.type === "directory")
      gone.set(inodeKey(root, path, row.ino), joinPath(path, name));
}

/** The worktree may be on another file system, where an equal number is another file. */
function inodeKey(root: TreeRoot, directory: string, inode: number): number {
  return typeof root !== "string" && isInWorktree(directory) ? -inode : inode;
}

/** How many rows have this `inodeKey`. */
function countHeld({ root, rows }: FindMovedInput, key: number): number {
  const inode = Math.abs(key);
  return rows.namesOf(inode).filter((path) => inodeKey(root, parentPath(path), inode) === key).length;
}

function toFlaws(input: FindMovedInput, { unmatched, gone }: Seen): Flaw[] {
  if (unmatched.length + gone.size === 0) return [];
  const { stored, survey } = input;
  // The inode of a moved directory is known, but what was read below its old name may not be all of it.
  const isIncomplete = stored.missed.length + survey.removed.length > 0;
  const named = new Set([...survey.flaws, ...stored.flaws].map(({ path }) => path));
  const flaws: Flaw[] = [];
  for (const { path, inode, isDirectory } of unmatched) {
    const isHeld = countHeld(input, inode) > 0 && !(isDirectory && isIncomplete);
    if (!isHeld && !named.has(path)) flaws.push({ path, kind: "skipped", reason: MOVED });
  }
  for (const [inode, path] of gone)
    if (countHeld(input, inode) > 1) flaws.push({ path, kind: "degraded", reason: STORED_TWICE });
  return flaws;
}

const MOVED = "it was moved while the cell was being captured, and its new name was not read in time";
const STORED_TWICE =
  "it was moved while the cell was being captured, and is stored under its old and new name";

function namesIn(root: TreeRoot, tree: OpenTree, path: string): string[] {
  try {
    return listTreeNames(root, tree, path);
  } catch {
    // Gone or unreadable by now; the walk has reported what it could not read.
    return [];
  }
}

function statIn(tree: OpenTree, path: string): Stats | undefined {
  try {
    return lstatSync(systemPath(tree.at(path)), { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function statOf(root: TreeRoot, path: string): Stats | undefined {
  try {
    return lstatSync(systemPath(diskPath(root, path)), { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
