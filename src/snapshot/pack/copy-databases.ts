// Databases in use are captured from copies that SQLite makes in the vault's scratch directory. A database that SQLite
// cannot copy is captured as plain files, with a flaw (INV-6).
import { hash } from "node:crypto";
import { join } from "node:path";
import type { Flaw } from "../model/entry.ts";
import { isSidecar } from "../model/sqlite-files.ts";
import type { Walk } from "../scan/found.ts";
import { nameAt } from "../scan/name-table.ts";
import type { StatCache } from "../scan/stat-cache.ts";
import { backupDatabase, findDatabasesInUse } from "./sqlite-backup.ts";

/** Where the bytes of a database are read: the copy, or the live file where SQLite could not make one. */
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
  cellRoot: string,
  walk: Pick<Walk, "found">,
  cache: StatCache | undefined,
  scratch: string,
): Promise<DatabaseCopies> {
  const folded = new Set<string>();
  const copies: DatabaseCopy[] = [];
  // Known paths are filtered by their cached name, since building 100,000 paths takes longer.
  const sidecarPaths = walk.found
    .filter(({ type, row, path }) => type === "file" && isSidecar(row < 0 ? path : nameAt(cache!, row)))
    .map(({ path }) => path);
  for (const [database, sidecars] of findDatabasesInUse(cellRoot, sidecarPaths)) {
    const copy = await copyDatabase(cellRoot, database, scratch);
    copies.push(copy);
    if (copy.flaw === undefined) for (const sidecar of sidecars) folded.add(sidecar);
  }
  return { copies, folded };
}

export async function copyDatabase(
  cellRoot: string,
  database: string,
  scratch: string,
): Promise<DatabaseCopy> {
  const live = `${cellRoot}/${database}`;
  // Named after the path: a second copy replaces the first one and no other database's.
  const copy = join(scratch, `database-${hash("sha256", database)}`);
  const failure = await backupDatabase(live, copy);
  if (failure === undefined) return { database, source: copy };
  const reason = `SQLite could not copy it (${failure}); captured as plain files`;
  return { database, source: live, flaw: { path: database, kind: "degraded", reason } };
}

export function flawsOf(copies: readonly DatabaseCopy[]): Flaw[] {
  return copies.flatMap(({ flaw }) => (flaw === undefined ? [] : [flaw]));
}

export function sourcesOf(copies: readonly DatabaseCopy[]): Map<string, string> {
  return new Map(copies.map(({ database, source }) => [database, source]));
}
