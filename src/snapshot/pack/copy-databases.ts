// Databases in use are captured from copies that SQLite makes, in the vault's scratch; what it cannot copy is captured as
// it is, and that is said (INV-6).
import { hash } from "node:crypto";
import { join } from "node:path";
import type { MissionContext } from "../mission-context.ts";
import type { Flaw } from "../model/entry.ts";
import { nameAt } from "../scan/name-table.ts";
import type { StatCache } from "../scan/stat-cache.ts";
import type { Walk } from "../scan/walk.ts";
import { backupDatabase, findDatabasesInUse, isSidecar } from "./sqlite-backup.ts";

/** Copies databases in use and enters them among the sources; returns the sidecars that are folded into the copies. */
export async function copyDatabases(
  context: MissionContext,
  walk: Walk,
  cache: StatCache | undefined,
  scratch: string,
  sources: Map<string, string>,
  flaws: Flaw[],
): Promise<Set<string>> {
  const folded = new Set<string>();
  // By the name that the cache has, where it has one: to look at the end of a path, the path must be put together.
  const paths = walk.found
    .filter(({ type, row, path }) => type === "file" && isSidecar(row < 0 ? path : nameAt(cache!, row)))
    .map(({ path }) => path);
  for (const [database, sidecars] of findDatabasesInUse(context.cellRoot, paths)) {
    if (await copyDatabase(context, database, sources, scratch, flaws))
      for (const sidecar of sidecars) folded.add(sidecar);
  }
  return folded;
}

/** Copies one database through SQLite; when it cannot, its files are captured as they are and that is said. */
export async function copyDatabase(
  context: MissionContext,
  database: string,
  sources: Map<string, string>,
  scratch: string,
  flaws: Flaw[],
): Promise<boolean> {
  const live = `${context.cellRoot}/${database}`;
  // By its path: one that is copied again takes its own place, and never that of another.
  const copy = join(scratch, `database-${hash("sha256", database)}`);
  const failure = await backupDatabase(live, copy);
  sources.set(database, failure === undefined ? copy : live);
  if (failure === undefined) return true;
  flaws.push({
    path: database,
    kind: "degraded",
    reason: `SQLite could not copy it (${failure}); captured as plain files`,
  });
  return false;
}
