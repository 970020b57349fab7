// Captures SQLite databases that are in use through SQLite's own backup, so that a live agent's database is never torn.
// The copy stands for the database, its -wal, -shm and -journal files being folded into it. Read-only: the database's
// own files are not changed.
import { closeSync, constants, existsSync, fstatSync, openSync, readSync, rmSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { systemPath } from "../model/path-bytes.ts";
import { SQLITE_MAGIC, sidecarSuffix } from "../model/sqlite-files.ts";

const BUSY_MS = 5000;
/** All of them: between two steps a busy writer would make SQLite start over, again and again. */
const PAGES_AT_ONCE = 2 ** 31 - 1;
const READ_ONLY_RECOVERY = 776;
/**
 * A transaction that begins between two steps of a reader looks as if it had been left behind: SQLite would lock the
 * database to be sure, and we only read (5 of 10,000 looks, with a journal that persists). One that was is so each time.
 */
const LOOKS = 3;

/** The databases that have a sidecar among these paths, each with the sidecars found. */
export function findDatabasesInUse(root: string, paths: Iterable<string>): Map<string, string[]> {
  const databases = new Map<string, string[]>();
  for (const path of paths) {
    const suffix = sidecarSuffix(path);
    if (suffix === undefined) continue;
    const database = path.slice(0, -suffix.length);
    const known = databases.get(database);
    if (known !== undefined) known.push(path);
    else if (isDatabase(`${root}/${database}`)) databases.set(database, [path]);
  }
  return databases;
}

function isDatabase(file: string): boolean {
  try {
    const fd = openSync(systemPath(file), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const head = Buffer.alloc(SQLITE_MAGIC.length);
      return (
        fstatSync(fd).isFile() &&
        readSync(fd, head, 0, head.length, 0) === head.length &&
        head.equals(SQLITE_MAGIC)
      );
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
}

export interface BackupOptions {
  readonly busyMs?: number;
  /** SQLite's backup function; tests inject one that fails. */
  readonly backup?: typeof backup;
}

/** Copies a consistent state of the database. Returns the reason when SQLite cannot. */
export async function backupDatabase(
  file: string,
  copy: string,
  { busyMs = BUSY_MS, backup: copyPages = backup }: BackupOptions = {},
): Promise<string | undefined> {
  for (let look = 1; ; look += 1) {
    try {
      rmSync(copy, { force: true });
      using source = new DatabaseSync(systemPath(file), { readOnly: true, timeout: busyMs });
      await copyPages(source, copy, { rate: PAGES_AT_ONCE });
      return existsSync(copy) ? undefined : "SQLite wrote no copy";
    } catch (error) {
      rmSync(copy, { force: true });
      if (numberOf(error) !== READ_ONLY_RECOVERY || look === LOOKS) return explain(error, busyMs);
    }
  }
}

const numberOf = (error: unknown) =>
  error instanceof Error && "errcode" in error ? error.errcode : undefined;

function explain(error: unknown, busyMs: number): string {
  if (!(error instanceof Error)) return String(error);
  const number = numberOf(error);
  // Node reports a database that stayed locked as error 0, "not an error".
  if (number === 0) return `it stayed locked for ${busyMs / 1000} s`;
  if (number === READ_ONLY_RECOVERY)
    return "its last transaction was cut off, and SQLite will undo it from the journal";
  return error.message;
}
