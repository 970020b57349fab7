// Looks at the paths of a dirty set: which of them have to be inspected, and what else depends on them. O(changes), not
// O(cell). Inspects, reads and descends through injected functions.
import { parentPath } from "../model/path-bytes.ts";
import { someParent } from "../model/paths.ts";
import { SIDECAR_SUFFIXES, sidecarSuffix } from "../model/sqlite-files.ts";
import type { Matcher } from "../path-patterns.ts";
import type { Found } from "./found.ts";
import type { Inspector } from "./inspect.ts";
import { baseName, type StatRow } from "./stat-row.ts";
import type { StatRows } from "./stat-rows.ts";

/** A dirty set that grows. */
export interface Candidates {
  readonly paths: Set<string>;
  readonly trees: Set<string>;
}

/** A directory to read or descend into. */
export type Directory = Pick<Found, "path" | "row" | "unchanged">;

export interface LookContext {
  readonly rows: StatRows;
  readonly result: Inspector;
  readonly isExcluded: Matcher;
  /** Walks everything below the directory. */
  descend(directory: Directory): void;
  /** Reads the directory's names, inspects those without a row, and walks new directories. */
  readNew(directory: Directory): void;
}

/** Page sizes of SQLite are multiples of this, and so is the size of every database. */
const SQLITE_BLOCK = 512;

export function lookAt(candidates: Candidates, context: LookContext): void {
  /** Every path at or below these was inspected. */
  const walked = new Set<string>();
  const looked = new Set<string>();
  const pending: string[] = [];
  const request = (path: string) => {
    const top = topmostUnknown(context.rows, path);
    if (looked.has(top)) return;
    looked.add(top);
    pending.push(top);
  };
  const isWalked = (path: string) =>
    walked.has(".") || walked.has(path) || someParent(path, (parent) => walked.has(parent));
  const lookAtPending = (trees: ReadonlySet<string>) => {
    for (let path = pending.pop(); path !== undefined; path = pending.pop())
      if (!isWalked(path)) lookAtOne(path, trees.has(path), context, { request, walked });
  };
  // Trees first: what is below them need not be inspected on its own.
  for (const path of candidates.trees) request(path);
  lookAtPending(candidates.trees);
  for (const path of candidates.paths) request(path);
  lookAtPending(NONE);
  // What was found and missed below a directory that was moved, replaced or removed.
  do {
    lookAtPending(NONE);
    for (const name of namesOfShared(context)) if (!isWalked(name)) request(name);
  } while (pending.length > 0);
}

const NONE: ReadonlySet<string> = new Set();

/** All names of the files with several names that were found or are gone. */
function namesOfShared({ rows, result }: LookContext): Set<string> {
  const names = [
    ...[...result.found.values()].flatMap((seen) => otherNames(rows, rows.stat(seen.path), seen)),
    ...[...result.gone.keys()].flatMap((path) => otherNames(rows, rows.stat(path), undefined)),
  ];
  return new Set(names);
}

/** The path itself or, where its parents have no rows, the highest of them that has none: it is new as a whole. */
function topmostUnknown(rows: StatRows, path: string): string {
  let top = path;
  for (let up = parentPath(top); up !== "." && rows.stat(up)?.type !== "directory"; up = parentPath(up))
    top = up;
  return top;
}

interface Progress {
  readonly request: (path: string) => void;
  readonly walked: Set<string>;
}

function lookAtOne(path: string, isTree: boolean, context: LookContext, { request, walked }: Progress): void {
  const { rows, result, isExcluded } = context;
  if (path !== "." && isExcluded(path, baseName(path))) return;
  const row = rows.stat(path);
  const wasGone = result.gone.has(path);
  const seen = result.inspect(path, row);
  if (seen !== undefined) result.add(seen);
  // A name that appeared or disappeared has also changed its directory.
  if (path !== "." && seen?.row === undefined) request(parentPath(path));
  for (const name of otherNames(rows, row, seen)) request(name);
  for (const name of databaseFiles(path, seen)) request(name);
  if (seen?.type !== "directory") return;
  if (isTree || wasGone || seen.row === undefined || seen.isOther) {
    walked.add(path);
    context.descend(seen);
  } else if (!seen.unchanged || seen.row!.isPartial) context.readNew(seen);
}

/** The other names of a file: their stat changes with it, and they are stored together. */
function otherNames(rows: StatRows, row: StatRow | undefined, seen: Found | undefined): string[] {
  const isShared = (row?.type === "file" && row.nlink > 1) || (seen?.type === "file" && seen.nlink > 1);
  if (!isShared) return [];
  const inodes = new Set([
    row?.ino,
    seen?.inode === undefined ? undefined : Number(seen.inode.split(":")[1]),
  ]);
  return [...inodes].flatMap((inode) => (inode === undefined ? [] : rows.namesOf(inode)));
}

/** A database and its sidecars are captured together. */
function databaseFiles(path: string, seen: Found | undefined): string[] {
  const suffix = sidecarSuffix(path);
  if (suffix !== undefined) return familyOf(path.slice(0, -suffix.length));
  return seen?.type === "file" && seen.size % SQLITE_BLOCK === 0 ? familyOf(path) : [];
}

function familyOf(database: string): string[] {
  return [database, ...SIDECAR_SUFFIXES.map((suffix) => database + suffix)];
}
