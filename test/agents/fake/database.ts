// The database of a fake agent.
import { DatabaseSync } from "node:sqlite";

/** Open while the agent lives, like the real one: after a kill, part of it is in the write-ahead log. */
export function keptOpen(schema: string): (path: string) => DatabaseSync {
  let database: DatabaseSync | undefined;
  return (path) => {
    if (database !== undefined) return database;
    database = new DatabaseSync(path, { timeout: 60_000 });
    database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; ${schema}`);
    return database;
  };
}
