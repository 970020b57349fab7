// Copies SQLite databases that are in use through SQLite's backup API, so that the copy is consistent. It includes the
// transactions in the -wal and -journal files. Opens the database read-only and does not change its files.
import { existsSync, rmSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { systemErrorCode } from "../../platform/errors.ts";
import type { TreeRoot } from "../model/cell-tree.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import { isDatabaseFile, sidecarSuffix } from "../model/sqlite-files.ts";

const BUSY_MS = 5000;
/** All pages: between two steps a busy writer would make SQLite start over. */
const PAGES_AT_ONCE = 2 ** 31 - 1;
const READ_ONLY_RECOVERY = 776;
/**
 * A transaction that starts while the database is being opened looks like one left behind by a crash, which cannot be
 * recovered read-only (5 of 10,000 attempts with a persistent journal). A real leftover fails every attempt.
 */
const ATTEMPTS = 3;

/** The databases that have a sidecar among these paths, with their sidecars. */
export function findDatabasesInUse(root: TreeRoot, paths: Iterable<string>): Map<string, string[]> {
  const databases = new Map<string, string[]>();
  using tree = new OpenTree(root);
  for (const path of paths) {
    const suffix = sidecarSuffix(path);
    if (suffix === undefined) continue;
    const database = path.slice(0, -suffix.length);
    const known = databases.get(database);
    if (known !== undefined) known.push(path);
    else if (isDatabaseFile(() => tree.at(database))) databases.set(database, [path]);
  }
  return databases;
}

export interface BackupOptions {
  readonly busyMs?: number;
  /** SQLite's backup function; tests inject one that fails. */
  readonly backup?: typeof backup;
  /** Whether the opened file is the intended one; called after the database was opened and after it was copied. */
  readonly isInCell?: () => boolean;
}

/** Copies a consistent state of the database. Returns the reason when SQLite cannot. */
export async function backupDatabase(
  file: string,
  copy: string,
  { busyMs = BUSY_MS, backup: copyPages = backup, isInCell = () => true }: BackupOptions = {},
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      rmSync(copy, { force: true });
      using source = new DatabaseSync(systemPath(file), { readOnly: true, timeout: busyMs });
      requireInCell(isInCell);
      await copyPages(source, copy, { rate: PAGES_AT_ONCE });
      requireInCell(isInCell);
      return existsSync(copy) ? undefined : "SQLite wrote no copy";
    } catch (error) {
      rmSync(copy, { force: true });
      if (errorNumber(error) !== READ_ONLY_RECOVERY || attempt === ATTEMPTS) return explain(error, busyMs);
    }
  }
}

function requireInCell(isInCell: () => boolean): void {
  const outside = new Error("a directory above it became a link to a place outside the cell");
  try {
    if (!isInCell()) throw outside;
  } catch (error) {
    throw systemErrorCode(error) === undefined ? error : outside;
  }
}

const errorNumber = (error: unknown) =>
  error instanceof Error && "errcode" in error ? error.errcode : undefined;

function explain(error: unknown, busyMs: number): string {
  if (!(error instanceof Error)) return String(error);
  const number = errorNumber(error);
  // Node reports a database that stayed locked as error 0, "not an error".
  if (number === 0) return `it stayed locked for ${busyMs / 1000} s`;
  if (number === READ_ONLY_RECOVERY)
    return "its last transaction was interrupted, and SQLite will roll it back from the journal";
  return error.message;
}
