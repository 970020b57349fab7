// The only file that opens SQLite databases: WAL, synchronous=FULL (INV-1), migrations, group commit, and clear errors for
// a database that is newer, foreign, locked or damaged. The SQL of each schema is in the module that owns it.
import { chmodSync, copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { Clock } from "./clock.ts";
import { makeDirectory } from "./durable.ts";
import { asLazarusError, type ErrorCode, LazarusError, messageOf } from "./errors.ts";
import type { Machine } from "./machine.ts";

export type { DatabaseSync, StatementSync };

export interface DatabaseSpec {
  /** The name of the database in messages: "the registry". */
  readonly what: string;
  /** Stored in the file, so that another program's database is never written to. */
  readonly applicationId: number;
  /** Migration n upgrades schema n to n + 1. Never edited once released. */
  readonly migrations: readonly string[];
  readonly newer: ErrorCode;
  readonly foreign: ErrorCode;
  readonly damaged: ErrorCode;
  /** When another process holds the lock for too long. Default INTERNAL. */
  readonly locked?: ErrorCode;
  /** Page size of a new file. Default 4096; rows of about half a page waste the other half. */
  readonly pageBytes?: number;
  /** Size of the write-ahead log at which SQLite checkpoints it. Default 1000 pages. */
  readonly walBytes?: number;
}

const BUSY_TIMEOUT_MS = 10_000;
/** Between two attempts to get a lock that another process holds. */
const MAX_RETRY_MS = 20;

export function openDatabase(machine: Machine, path: string, spec: DatabaseSpec): DatabaseSync {
  const fresh = !existsSync(path);
  let database: DatabaseSync | undefined;
  try {
    makeDirectory(machine.disk, dirname(path));
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    if (fresh) chmodSync(path, 0o600);
    if (fresh && spec.pageBytes !== undefined) database.exec(`PRAGMA page_size = ${spec.pageBytes};`);
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;");
    if (spec.walBytes !== undefined) limitWal(database, spec.walBytes);
    migrate(database, path, spec);
    return database;
  } catch (error) {
    database?.close();
    throw databaseError(error, path, spec);
  }
}

/** Opens an empty database that ends with the process. */
export function openDatabaseInMemory(spec: DatabaseSpec): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  database.exec("PRAGMA foreign_keys = ON");
  migrate(database, ":memory:", spec);
  return database;
}

function limitWal(database: DatabaseSync, walBytes: number): void {
  const { page_size: pageBytes } = database.prepare("PRAGMA page_size").get() as { page_size: number };
  database.exec(
    `PRAGMA wal_autocheckpoint = ${Math.ceil(walBytes / pageBytes)}; PRAGMA journal_size_limit = ${walBytes};`,
  );
}

function migrate(database: DatabaseSync, path: string, spec: DatabaseSpec): void {
  if (readPragma(database, "user_version") === spec.migrations.length) {
    if (readPragma(database, "application_id") === spec.applicationId) return;
  }
  inTransaction(database, () => {
    const version = readPragma(database, "user_version");
    const applicationId = readPragma(database, "application_id");
    const tables = database.prepare("SELECT count(*) AS n FROM sqlite_schema").get() as { n: number };
    if (applicationId !== spec.applicationId && (applicationId !== 0 || tables.n > 0)) {
      throw new LazarusError(spec.foreign, `${path} is not ${spec.what}: it belongs to another program`, {
        hint: `move it away: mv ${path} ${path}.other`,
      });
    }
    if (version > spec.migrations.length) {
      throw new LazarusError(
        spec.newer,
        `${spec.what} ${path} has schema ${version}; this version of Lazarus supports up to ${spec.migrations.length}`,
        { hint: "upgrade Lazarus on this machine: npm install -g lazarus@latest" },
      );
    }
    for (let next = version; next < spec.migrations.length; next += 1) database.exec(spec.migrations[next]!);
    database.exec(
      `PRAGMA application_id = ${spec.applicationId}; PRAGMA user_version = ${spec.migrations.length};`,
    );
  });
}

/** Runs `work` in one immediate transaction: all of it is durable at return, or none of it happened. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  const { begin, commit } = statementsOf(database);
  begin.run();
  try {
    const result = work();
    commit.run();
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

interface TransactionStatements {
  readonly begin: StatementSync;
  readonly commit: StatementSync;
}

const transactionStatements = new WeakMap<DatabaseSync, TransactionStatements>();

/** Prepared once: parsing these two statements took a tenth of a small transaction. */
function statementsOf(database: DatabaseSync): TransactionStatements {
  let found = transactionStatements.get(database);
  if (found === undefined) {
    found = { begin: database.prepare("BEGIN IMMEDIATE"), commit: database.prepare("COMMIT") };
    transactionStatements.set(database, found);
  }
  return found;
}

/** Combines concurrent writes of one process into one commit. */
export interface GroupCommit {
  /**
   * Runs `work` in a transaction shared with other waiting writes; durable when the promise resolves. If it throws, only
   * its own changes are rolled back. A `lazy` write survives the process but not a power cut, until a later full one.
   */
  run<T>(work: () => T, sync?: Sync): Promise<T>;
}

export type Sync = "full" | "lazy";

interface Waiting {
  /** Does the work. Returns a function that resolves its promise, to be called after the commit. */
  perform(): () => void;
  reject(error: unknown): void;
  readonly sync: Sync;
}

/**
 * Collects the writes of one turn of the event loop into one transaction, so that a thousand concurrent saves need a few
 * fsyncs instead of a thousand. A single writer waits no longer than it would alone. With `clock`, a lock of another
 * process is waited for without blocking the event loop; writes that arrive in the meantime join the group.
 */
export function createGroupCommit(database: DatabaseSync, clock?: Clock): GroupCommit {
  let waiting: Waiting[] = [];
  let isBusy = false;
  let sync: Sync = "full";
  const commit = (group: readonly Waiting[]): (() => void)[] => {
    const wanted = group.some((each) => each.sync === "full") ? "full" : "lazy";
    if (wanted !== sync) {
      database.exec(`PRAGMA synchronous = ${wanted === "full" ? "FULL" : "NORMAL"}`);
      sync = wanted;
    }
    return inTransaction(database, () => group.map((each) => inSavepoint(database, each, group.length)));
  };
  const flush = async () => {
    if (isBusy) return;
    isBusy = true;
    for (let waitMs = 1, deadlineMs: number | undefined; waiting.length > 0; ) {
      const group = waiting;
      waiting = [];
      try {
        for (const resolve of commit(group)) resolve();
        deadlineMs = undefined;
      } catch (error) {
        if (clock !== undefined && isLocked(error)) {
          deadlineMs ??= clock.monotonicMs() + BUSY_TIMEOUT_MS;
          if (clock.monotonicMs() < deadlineMs) {
            waiting = [...group, ...waiting];
            await clock.sleep(waitMs);
            waitMs = Math.min(waitMs * 2, MAX_RETRY_MS);
            continue;
          }
        }
        for (const each of group) each.reject(error);
      }
    }
    isBusy = false;
  };
  return {
    run: <T>(work: () => T, sync: Sync = "full") =>
      new Promise<T>((resolve, reject) => {
        const perform = () => {
          const result = work();
          return () => resolve(result);
        };
        if (waiting.push({ perform, reject, sync }) === 1 && !isBusy) setImmediate(flush);
      }),
  };
}

/** Waits for a lock of another process without blocking the event loop. */
export async function whenUnlocked<T>(clock: Clock, work: () => T): Promise<T> {
  const deadlineMs = clock.monotonicMs() + BUSY_TIMEOUT_MS;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
    try {
      return work();
    } catch (error) {
      if (!isLocked(error) || clock.monotonicMs() >= deadlineMs) throw error;
      await clock.sleep(waitMs);
    }
  }
}

function isLocked(error: unknown): boolean {
  const number = errorNumber(error);
  return number === SQLITE_BUSY || number === SQLITE_LOCKED;
}

function errorNumber(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : undefined;
}

function inSavepoint(database: DatabaseSync, { perform, reject }: Waiting, groupSize: number): () => void {
  if (groupSize === 1) return perform();
  database.exec("SAVEPOINT one");
  try {
    const done = perform();
    database.exec("RELEASE one");
    return done;
  } catch (error) {
    // After SQLITE_FULL the whole transaction may be rolled back already: then every write in the group failed.
    if (!database.isTransaction) throw error;
    database.exec("ROLLBACK TO one; RELEASE one");
    return () => reject(error);
  }
}

function readPragma(database: DatabaseSync, name: "user_version" | "application_id"): number {
  const row = database.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
  return row[name]!;
}

const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_FULL = 13;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;
const SQLITE_READONLY = 8;
const SQLITE_CANTOPEN = 14;

/** Converts an error that SQLite reported about the database at `path`. */
export function databaseError(error: unknown, path: string, spec: DatabaseSpec): LazarusError {
  if (error instanceof LazarusError) return error;
  const number = errorNumber(error);
  switch (number) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return new LazarusError(
        spec.locked ?? "INTERNAL",
        `${spec.what} ${path} is locked by another process`,
        {
          hint: `find it: fuser ${path}`,
          cause: error,
        },
      );
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return new LazarusError(spec.damaged, `${spec.what} ${path} is damaged: ${messageOf(error)}`, {
        hint: `move it away: mv ${path} ${path}.damaged`,
        cause: error,
      });
    case SQLITE_FULL:
      return new LazarusError("DISK_FULL", `${spec.what} ${path}: the disk is full`, {
        hint: `df -h ${dirname(path)}`,
        cause: error,
      });
    case SQLITE_READONLY:
      return new LazarusError("DISK_READ_ONLY", `${spec.what} ${path} is read-only`, {
        hint: `ls -l ${path}`,
        cause: error,
      });
    case SQLITE_CANTOPEN:
      return new LazarusError("PERMISSION", `${spec.what} ${path} cannot be opened`, {
        hint: `ls -ld ${dirname(path)}`,
        cause: error,
      });
    default:
      return asLazarusError(error, `${spec.what} ${path}`, dirname(path));
  }
}

/** A larger database with a WAL but no -shm file is read without the WAL instead of being copied. */
const LARGEST_COPY_BYTES = 256 * 1024 * 1024;

/**
 * Reads a database that another process owns. Creates, changes and checkpoints nothing, and does not block its writer.
 * Returns undefined when the file does not exist.
 */
export function readDatabase<T>(path: string, use: (database: DatabaseSync) => T): T | undefined {
  if (!existsSync(path)) return undefined;
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (walBytes > 0 && existsSync(`${path}-shm`)) return withDatabase(path, use);
  // Without a WAL the file is complete. `immutable` keeps SQLite from creating one.
  const immutable = (file: string) => {
    const url = pathToFileURL(file);
    url.search = "?immutable=1";
    return url;
  };
  if (walBytes === 0 || statSync(path).size + walBytes > LARGEST_COPY_BYTES)
    return withDatabase(immutable(path), use);
  const directory = mkdtempSync(join(tmpdir(), "lazarus-read-"));
  try {
    for (const suffix of ["", "-wal"]) copyFileSync(path + suffix, join(directory, `copy.db${suffix}`));
    return withDatabase(join(directory, "copy.db"), use);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function withDatabase<T>(location: string | URL, use: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(location, { readOnly: true, timeout: 1000 });
  try {
    return use(database);
  } finally {
    database.close();
  }
}
