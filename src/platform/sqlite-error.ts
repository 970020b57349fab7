// What SQLite said about a file of runs or graph checkpoints, in the house's words. A lock that another process holds
// passes: it must not end a run for good.
import { LazarusError } from "./errors.ts";
import { type DatabaseSpec, databaseError } from "./sqlite.ts";

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;

/** The error to throw for what a statement on the database at `path` threw. */
export function sqliteError(error: unknown, path: string, spec: DatabaseSpec): LazarusError {
  if (error instanceof LazarusError) return error;
  const code = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
  if (code !== SQLITE_BUSY && code !== SQLITE_LOCKED) return databaseError(error, path, spec);
  return new LazarusError("RUN_STORE_UNREACHABLE", `${spec.what} ${path} is locked by another process`, {
    hint: `find it: fuser ${path}`,
    cause: error,
  });
}
