// Databases of stat stores that stay open between live points: opening and closing one takes several fsyncs. Only the most
// recently used ones are kept. A file that was changed or replaced in the meantime is opened again.
import { statSync } from "node:fs";
import type { DatabaseSync } from "../../platform/sqlite.ts";

interface Kept {
  readonly database: DatabaseSync;
  readonly stamp: string;
}

const MAX_KEPT = 8;
/** Least recently used first. */
const kept = new Map<string, Kept>();

/** A database that was kept, with no transaction open. */
export function takeKept(file: string): DatabaseSync | undefined {
  const found = kept.get(file);
  if (found === undefined) return undefined;
  kept.delete(file);
  if (stampOf(file) === found.stamp) return found.database;
  found.database.close();
  return undefined;
}

export function keepOpen(file: string, database: DatabaseSync): void {
  kept.get(file)?.database.close();
  kept.delete(file);
  kept.set(file, { database, stamp: stampOf(file) });
  for (const [oldest, { database: unused }] of kept) {
    if (kept.size <= MAX_KEPT) break;
    unused.close();
    kept.delete(oldest);
  }
}

/** Commits go to the log: the file itself changes when SQLite empties the log, or when it is damaged or replaced. */
function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "gone" : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
}
