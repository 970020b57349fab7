// Databases in use are captured from copies that SQLite makes in the vault's scratch directory. A database that SQLite
// cannot copy is captured as plain files, with a flaw (INV-6).
import { hash } from "node:crypto";
import { lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { LIVE_FILE } from "../model/capture-item.ts";
import { diskPath, type TreeRoot } from "../model/cell-tree.ts";
import type { Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import { isSidecar } from "../model/sqlite-files.ts";
import type { Walk } from "../scan/found.ts";
import { backupDatabase, findDatabasesInUse } from "./sqlite-backup.ts";

/** Where the bytes of a database are read: the copy, or LIVE_FILE where SQLite could not make one. */
export interface DatabaseCopy {
  readonly database: string;
  readonly source: string;
  /** Set when there is no copy. */
  readonly flaw?: Flaw;
}

export interface DatabaseCopies {
  readonly copies: readonly DatabaseCopy[];
  /** Sidecars whose content is part of a copy, and which the checkpoint leaves out. */
  readonly folded: ReadonlySet<string>;
}

/** Copies every database that has a sidecar in the walk. */
export async function copyDatabasesInUse(
  cell: TreeRoot,
  walk: Pick<Walk, "found">,
  scratch: string,
): Promise<DatabaseCopies> {
  const folded = new Set<string>();
  const copies: DatabaseCopy[] = [];
  const sidecarPaths = walk.found
    .values()
    .filter(({ type, path }) => type === "file" && isSidecar(path))
    .map(({ path }) => path);
  for (const [database, sidecars] of findDatabasesInUse(cell, sidecarPaths)) {
    const copy = await copyDatabase(cell, database, scratch);
    copies.push(copy);
    if (copy.flaw === undefined) for (const sidecar of sidecars) folded.add(sidecar);
  }
  return { copies, folded };
}

export async function copyDatabase(cell: TreeRoot, database: string, scratch: string): Promise<DatabaseCopy> {
  const live = diskPath(cell, database);
  // Named after the path: a second copy replaces the first one and no other database's.
  const copy = join(scratch, `database-${hash("sha256", database)}`);
  const isInCell = () => isOpenInCell(cell, database);
  const failure = await backupDatabase(live, copy, { isInCell });
  if (failure === undefined) return { database, source: copy };
  const reason = `SQLite could not copy it (${failure}); captured as plain files`;
  return { database, source: LIVE_FILE, flaw: { path: database, kind: "degraded", reason } };
}

/**
 * Whether this process has opened the file that the cell has at this path. SQLite resolves links in a path itself, so a
 * directory that has just become a link would lead it out of the cell.
 */
function isOpenInCell(cell: TreeRoot, database: string): boolean {
  using tree = new OpenTree(cell);
  const found = lstatSync(systemPath(tree.at(database)), { bigint: true });
  if (process.platform !== "linux") return found.isFile();
  return readdirSync("/proc/self/fd").some((fd) => {
    const open = statSync(`/proc/self/fd/${fd}`, { bigint: true, throwIfNoEntry: false });
    return open?.dev === found.dev && open.ino === found.ino;
  });
}

export function flawsOf(copies: readonly DatabaseCopy[]): Flaw[] {
  return copies.flatMap(({ flaw }) => (flaw === undefined ? [] : [flaw]));
}

export function sourcesOf(copies: readonly DatabaseCopy[]): Map<string, string> {
  return new Map(copies.map(({ database, source }) => [database, source]));
}
