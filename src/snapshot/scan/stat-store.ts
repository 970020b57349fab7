// The stat store: the rows of the newest checkpoint in a SQLite table, outside the vault, because they describe this machine
// and grow with the cell. A checkpoint changes only the rows that differ, in one transaction that also changes the list of
// layers they describe, after the index was published. A store that lists other layers is stale, one that SQLite cannot read
// is damaged; both are replaced. Losing it costs time, nothing else.
import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Machine } from "../../platform/machine.ts";
import { type DatabaseSync, inTransaction, openDatabase, type StatementSync } from "../../platform/sqlite.ts";
import { joinPath, parentPath } from "../model/path-bytes.ts";
import type { ChangedRows } from "./changed-rows.ts";
import { keepOpen, takeKept } from "./kept-stores.ts";
import {
  decodeEntryRow,
  decodeStatRow,
  decodeText,
  ENTRY_COLUMNS,
  encodeRow,
  encodeText,
  STAT_COLUMNS,
  type Value,
} from "./stat-codec.ts";
import { baseName, type EntryRow, type StatRow } from "./stat-row.ts";
import type { StatRows, Totals } from "./stat-rows.ts";
import { STAT_STORE } from "./stat-schema.ts";

/** SQLite could not read the rows. */
export class StatStoreError extends Error {
  override name = "StatStoreError";
}

const ENTRY = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const PUT_ENTRIES = `INSERT OR REPLACE INTO entries (parent, ${ENTRY_COLUMNS}) VALUES`;
/** Rows per statement: a call costs as much as half a row. */
const BATCH = 16;
const PUT_BATCH = `${PUT_ENTRIES} ${Array(BATCH).fill(ENTRY).join(", ")}`;
const PUT_ENTRY = `${PUT_ENTRIES} ${ENTRY}`;
const SELECT_CHILDREN = `SELECT ${STAT_COLUMNS} FROM entries WHERE parent = ?`;
const SELECT_STAT = `SELECT ${STAT_COLUMNS} FROM entries WHERE parent = ? AND name = ?`;
const SELECT_ENTRY = `SELECT ${ENTRY_COLUMNS} FROM entries WHERE parent = ? AND name = ?`;
const FILES = ["-wal", "-shm", ""] as const;
/** The row of the cell itself is in no directory. */
const NOWHERE = 0;
/** What earlier versions kept in its place. */
const FORMER_FILES = ["stat-cache", "stat-cache.old", "stat-cache.new"] as const;

export function statStoreFile(cacheDirectory: string): string {
  return join(cacheDirectory, "stat-store.db");
}

/**
 * Undefined when the store is lost or damaged, or describes other layers than these or the first of them. `isKept`: it stays
 * open for the next checkpoint.
 */
export function openStatStore(
  machine: Machine,
  file: string,
  layers: readonly string[],
  isKept = false,
): StatStore | undefined {
  if (!existsSync(file)) return undefined;
  let database: DatabaseSync | undefined;
  try {
    database = takeKept(file) ?? open(machine, file);
    const store = new StatStore(database, isKept ? file : undefined);
    if (store.layers.length > 0 && store.layers.every((digest, i) => digest === layers[i])) return store;
  } catch {
    // Replaced by the next checkpoint.
  }
  database?.close();
  return undefined;
}

/**
 * Whether a store has more than `limit` files with several names. Cheap: it looks at no more of them. False when the store cannot be
 * read: then the next checkpoint does not use it either.
 */
export function hasManyLinked(machine: Machine, cacheDirectory: string, limit: number): boolean {
  const file = statStoreFile(cacheDirectory);
  if (!existsSync(file)) return false;
  let database: DatabaseSync | undefined;
  try {
    database = takeKept(file) ?? open(machine, file);
    const found = database
      .prepare("SELECT 1 FROM entries WHERE type = 0 AND nlink > 1 LIMIT ?")
      .all(limit + 1);
    keepOpen(file, database);
    return found.length > limit;
  } catch {
    database?.close();
    return false;
  }
}

/** Writes what a checkpoint holds, once the index names it. Throws what SQLite or the file system reports. */
export function saveRows(machine: Machine, file: string, rows: ChangedRows, layers: readonly string[]): void {
  if (rows.base instanceof StatStore) {
    rows.base.save(rows, layers);
    return;
  }
  // The log first: if it stayed without its database, SQLite would apply it to the next one.
  for (const suffix of FILES) rmSync(file + suffix, { force: true });
  for (const name of FORMER_FILES) rmSync(join(dirname(file), name), { force: true });
  crashPoint("snapshot.stat-store.removed");
  using store = new StatStore(open(machine, file));
  store.save(rows, layers);
}

function open(machine: Machine, file: string): DatabaseSync {
  const database = openDatabase(machine, file, STAT_STORE);
  // A power cut may lose the last transactions, never part of one: then the store is stale.
  database.exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096;");
  return database;
}

export class StatStore implements StatRows, Disposable {
  /** Digests of the layers that the rows describe; empty in a new store. */
  readonly layers: readonly string[];
  readonly rules: string;
  readonly totals: Totals;
  private readonly database: DatabaseSync;
  private readonly keptFile: string | undefined;
  private readonly statements = new Map<string, StatementSync>();
  private readonly directoryIds = new Map<string, number>();

  /** With `keptFile`, the database stays open when the store is disposed of. */
  constructor(database: DatabaseSync, keptFile?: string) {
    this.database = database;
    this.keptFile = keptFile;
    // All queries see one state, even in a reader without the vault's lock.
    database.exec("BEGIN");
    const [meta] = this.all("SELECT layers, rules, files, directories, others, bytes FROM meta");
    const [layers = "[]", rules = "", files = 0, directories = 0, others = 0, bytes = 0] = meta ?? [];
    this.layers = reading(() => JSON.parse(String(layers)));
    this.rules = String(rules);
    this.totals = {
      files: Number(files),
      directories: Number(directories),
      others: Number(others),
      bytes: Number(bytes),
    };
  }

  get skipped(): ReadonlySet<string> {
    return new Set(this.all("SELECT path FROM skipped").map(([path]) => decodeText(String(path))));
  }

  stat(path: string): StatRow | undefined {
    const row = this.at(path, SELECT_STAT);
    return row === undefined ? undefined : decodeStatRow(row);
  }

  entry(path: string): EntryRow | undefined {
    const row = this.at(path, SELECT_ENTRY);
    return row === undefined ? undefined : reading(() => decodeEntryRow(row));
  }

  children(path: string): readonly StatRow[] {
    const id = this.idOf(path);
    if (id === undefined) return [];
    return this.all(SELECT_CHILDREN, id).map(decodeStatRow);
  }

  namesOf(inode: number): string[] {
    return this.paths("WHERE ino = ?", inode);
  }

  groupSize(group: string): number {
    return Number(this.all('SELECT count(*) FROM entries WHERE "group" = ?', group)[0]![0]);
  }

  racy(): string[] {
    return this.paths("WHERE racy = 1");
  }

  fifos(): string[] {
    return this.paths("WHERE type = 3");
  }

  linked(): string[] {
    const files = "FROM entries WHERE type = 0 AND nlink > 1";
    return this.paths(
      `WHERE type = 0 AND nlink > 1 AND ino IN (SELECT ino ${files} GROUP BY ino HAVING count(*) < max(nlink))`,
    );
  }

  directories(): string[] {
    return this.all("SELECT path FROM directories").map(([path]) => decodeText(String(path)));
  }

  /** Updates the table to `rows`, all or nothing. */
  save(rows: ChangedRows, layers: readonly string[]): void {
    this.database.exec("COMMIT");
    inTransaction(this.database, () => {
      this.saveSkipped(rows.skipped);
      const lostDirectories: string[] = [];
      for (const [path, row] of rows.changes)
        if (row?.type !== "directory" && this.idOf(path) !== undefined) lostDirectories.push(path);
      for (const [path, row] of rows.changes) if (row === undefined) this.deleteEntry(path);
      for (const path of lostDirectories) this.deleteDirectory(path);
      this.putEntries(rows.changes);
      const { files, directories, others, bytes } = rows.totals;
      this.run(
        "INSERT OR REPLACE INTO meta VALUES (1, ?, ?, ?, ?, ?, ?)",
        ...[JSON.stringify(layers), rows.rules, files, directories, others, bytes],
      );
      crashPoint("snapshot.stat-store.rows-written");
    });
  }

  [Symbol.dispose](): void {
    const { database, keptFile } = this;
    if (database.isTransaction) database.exec("ROLLBACK");
    this.statements.clear();
    if (keptFile === undefined) database.close();
    else keepOpen(keptFile, database);
  }

  private saveSkipped(paths: ReadonlySet<string>): void {
    const known = this.skipped;
    for (const path of known)
      if (!paths.has(path)) this.run("DELETE FROM skipped WHERE path = ?", encodeText(path));
    for (const path of paths)
      if (!known.has(path)) this.run("INSERT INTO skipped VALUES (?)", encodeText(path));
  }

  private deleteEntry(path: string): void {
    const parent = this.parentOf(path);
    if (parent !== undefined)
      this.run("DELETE FROM entries WHERE parent = ? AND name = ?", parent, encodeText(baseName(path)));
  }

  private deleteDirectory(path: string): void {
    this.run("DELETE FROM directories WHERE path = ?", encodeText(path));
    this.directoryIds.delete(path);
  }

  private putEntries(changes: ChangedRows["changes"]): void {
    // An index over all rows is built faster than row by row.
    const indexes = this.layers.length === 0 ? this.dropIndexes() : [];
    let batch: Value[][] = [];
    for (const [path, row] of changes) {
      if (row === undefined) continue;
      const parent = path === "." ? NOWHERE : this.makeDirectory(parentPath(path));
      if (row.type === "directory") this.makeDirectory(path);
      batch.push([parent, ...encodeRow(row)]);
      if (batch.length < BATCH) continue;
      this.run(PUT_BATCH, ...batch.flat());
      batch = [];
    }
    for (const values of batch) this.run(PUT_ENTRY, ...values);
    for (const index of indexes) this.database.exec(index);
  }

  /** Returns what creates them again. */
  private dropIndexes(): string[] {
    const indexes = this.all("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL");
    for (const [name] of indexes) this.database.exec(`DROP INDEX ${name}`);
    return indexes.map(([, sql]) => String(sql));
  }

  private makeDirectory(path: string): number {
    const known = this.idOf(path);
    if (known !== undefined) return known;
    const { lastInsertRowid } = this.run("INSERT INTO directories (path) VALUES (?)", encodeText(path));
    this.directoryIds.set(path, Number(lastInsertRowid));
    return Number(lastInsertRowid);
  }

  private at(path: string, sql: string): Value[] | undefined {
    const parent = this.parentOf(path);
    return parent === undefined ? undefined : this.all(sql, parent, encodeText(baseName(path)))[0];
  }

  private parentOf(path: string): number | undefined {
    return path === "." ? NOWHERE : this.idOf(parentPath(path));
  }

  private idOf(path: string): number | undefined {
    const known = this.directoryIds.get(path);
    // A new store has no directories but those that were just added.
    if (known !== undefined || this.layers.length === 0) return known;
    const [row] = this.all("SELECT id FROM directories WHERE path = ?", encodeText(path));
    if (row === undefined) return undefined;
    this.directoryIds.set(path, Number(row[0]));
    return Number(row[0]);
  }

  private paths(where: string, ...values: Value[]): string[] {
    const sql = `SELECT path, name FROM entries LEFT JOIN directories ON id = parent ${where}`;
    return this.all(sql, ...values).map(([directory, name]) =>
      directory === null ? "." : joinPath(decodeText(String(directory)), decodeText(String(name))),
    );
  }

  private all(sql: string, ...values: Value[]): Value[][] {
    return reading(() => this.prepare(sql).all(...values) as unknown as Value[][]);
  }

  private run(sql: string, ...values: Value[]): { readonly lastInsertRowid: number | bigint } {
    return this.prepare(sql).run(...values);
  }

  private prepare(sql: string): StatementSync {
    let statement = this.statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      statement.setReturnArrays(true);
      this.statements.set(sql, statement);
    }
    return statement;
  }
}

function reading<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StatStoreError("the stat store cannot be read", { cause: error });
  }
}
