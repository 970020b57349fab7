// The saver's rows in one SQLite file. Each put is one transaction and on disk when it returns, unless the host chose
// `survives: "kill"` (INV-1).
import { statSync } from "node:fs";
import type { SQLInputValue } from "node:sqlite";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Machine } from "../../platform/machine.ts";
import {
  createGroupCommit,
  type DatabaseSpec,
  type DatabaseSync,
  databaseError,
  openDatabase,
  type StatementSync,
} from "../../platform/sqlite.ts";
import { damagedGraph } from "./pack.ts";
import type { BlobRow, CheckpointRow, SaverRows, WriteRow } from "./rows.ts";

const SAVER_DATABASE: DatabaseSpec = {
  what: "the graph checkpoints",
  /** "LAZG" */
  applicationId: 0x4c415a47,
  migrations: [
    `
    -- The names are long and the rows many, so names are stored as numbers.
    CREATE TABLE thread (
      key  INTEGER PRIMARY KEY,
      name TEXT NOT NULL,
      ns   TEXT NOT NULL,
      UNIQUE (name, ns)
    ) STRICT;
    CREATE TABLE checkpoint (
      thread    INTEGER NOT NULL,
      id        TEXT NOT NULL,
      parent_id TEXT,
      body      BLOB NOT NULL,
      metadata  BLOB NOT NULL,
      PRIMARY KEY (thread, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE blob (
      thread  INTEGER NOT NULL,
      channel TEXT NOT NULL,
      version TEXT NOT NULL,
      base    TEXT,
      depth   INTEGER NOT NULL,
      keep    INTEGER NOT NULL,
      tail    INTEGER NOT NULL,
      type    TEXT NOT NULL,
      body    BLOB NOT NULL,
      PRIMARY KEY (thread, channel, version)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pending (
      thread     INTEGER NOT NULL,
      checkpoint TEXT NOT NULL,
      task_id    TEXT NOT NULL,
      "index"    INTEGER NOT NULL,
      channel    TEXT NOT NULL,
      type       TEXT NOT NULL,
      body       BLOB NOT NULL,
      PRIMARY KEY (thread, checkpoint, task_id, "index")
    ) STRICT, WITHOUT ROWID;
    `,
    `
    -- Long bodies are appended to one table, so that the tables above hold only short rows: a step then rewrites 28 KB
    -- of pages instead of 109. Older rows keep their body in place.
    CREATE TABLE long_body (
      id   INTEGER PRIMARY KEY,
      body BLOB NOT NULL
    ) STRICT;
    ALTER TABLE blob ADD COLUMN long_id INTEGER;
    ALTER TABLE pending ADD COLUMN long_id INTEGER;
    `,
  ],
  newer: "RUN_STORE_NEWER",
  foreign: "RUN_STORE_FOREIGN",
  damaged: "RUN_STORE_DAMAGED",
  locked: "RUN_STORE_UNREACHABLE",
  pageBytes: 4096,
  walBytes: 1024 * 1024,
};

/**
 * What a completed put survives. `power-loss`: everything; the disk is synced at each commit. `kill`: the end of the
 * process, but a power loss may lose the last steps, as with LangGraph's own SQLite saver.
 */
export type Survives = "power-loss" | "kill";

/** Larger bodies are stored in `long_body`. */
const MAX_INLINE_BYTES = 256;

const bodyOf = (table: string) =>
  `CASE WHEN ${table}.long_id IS NULL THEN ${table}.body
        ELSE (SELECT long_body.body FROM long_body WHERE long_body.id = ${table}.long_id) END AS body`;

function prepareStatements(database: DatabaseSync) {
  return {
    nextLong: database.prepare("SELECT coalesce(max(id), 0) + 1 AS id FROM long_body"),
    putLong: database.prepare("INSERT INTO long_body (id, body) VALUES (?, ?)"),
    removeLong: database.prepare(`
      DELETE FROM long_body WHERE id IN (
        SELECT long_id FROM blob WHERE thread = ? UNION ALL SELECT long_id FROM pending WHERE thread = ?)`),
    findThread: database.prepare("SELECT key FROM thread WHERE name = ? AND ns = ?"),
    addThread: database.prepare(
      "INSERT INTO thread (name, ns) VALUES (?, ?) ON CONFLICT DO UPDATE SET ns = excluded.ns RETURNING key",
    ),
    putCheckpoint: database.prepare(`
      INSERT INTO checkpoint (thread, id, parent_id, body, metadata) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (thread, id) DO UPDATE SET
        parent_id = excluded.parent_id, body = excluded.body, metadata = excluded.metadata`),
    putBlob: database.prepare(`
      INSERT INTO blob (thread, channel, version, base, depth, keep, tail, type, body, long_id)
      VALUES (:thread, :channel, :version, :base, :depth, :keep, :tail, :type, :body, :longId)
      ON CONFLICT (thread, channel, version) DO NOTHING`),
    putWrite: database.prepare(`
      INSERT INTO pending (thread, checkpoint, task_id, "index", channel, type, body, long_id)
      VALUES (:thread, :checkpoint, :taskId, :index, :channel, :type, :body, :longId)
      ON CONFLICT (thread, checkpoint, task_id, "index") DO UPDATE SET
        channel = excluded.channel, type = excluded.type, body = excluded.body WHERE pending."index" < 0`),
    list: database.prepare(`
      SELECT thread.name AS thread, thread.ns, id, parent_id AS parentId, body, metadata
      FROM checkpoint JOIN thread ON thread.key = checkpoint.thread
      WHERE (:thread IS NULL OR thread.name = :thread) AND (:ns IS NULL OR thread.ns = :ns)
        AND (:id IS NULL OR id = :id) AND (:beforeId IS NULL OR id < :beforeId)
      ORDER BY id DESC LIMIT :limit`),
    chain: database.prepare(`
      WITH RECURSIVE link AS (
        SELECT * FROM blob WHERE thread = :thread AND channel = :channel AND version = :version
        UNION ALL
        SELECT blob.* FROM link
        JOIN blob ON blob.thread = link.thread AND blob.channel = link.channel AND blob.version = link.base
          AND blob.depth < link.depth
      )
      SELECT channel, version, base, depth, keep, tail, type, ${bodyOf("link")} FROM link ORDER BY depth`),
    writes: database.prepare(`
      SELECT task_id AS taskId, "index", channel, type, ${bodyOf("pending")} FROM pending
      WHERE thread = ? AND checkpoint = ? ORDER BY task_id, "index"`),
  };
}

/** Opens the saver's file; creates it if needed. */
export function openSqliteRows(machine: Machine, path: string, survives: Survives = "power-loss"): SaverRows {
  const database = openDatabase(machine, path, SAVER_DATABASE);
  if (survives === "kill") database.exec("PRAGMA synchronous = NORMAL");
  const sql = prepareStatements(database);
  /** Inserts a row; a large body goes to `long_body`. */
  const putRow = (put: StatementSync, row: Record<string, SQLInputValue> & { readonly body: Uint8Array }) => {
    if (row.body.length <= MAX_INLINE_BYTES) {
      put.run({ ...row, longId: null });
      return;
    }
    const { id } = sql.nextLong.get() as { id: number };
    const { changes } = put.run({ ...row, body: new Uint8Array(), longId: id });
    if (changes === 1) sql.putLong.run(id, row.body);
  };
  const keyOf = (thread: string, ns: string) =>
    (sql.findThread.get(thread, ns) as { key: number } | undefined)?.key;
  const group = createGroupCommit(database);
  const attempt = async <T>(work: () => T | Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw databaseError(error, path, SAVER_DATABASE);
    }
  };
  const list = ({ thread, ns, id, beforeId, limit }: Parameters<SaverRows["list"]>[0]) =>
    sql.list.all({
      ...{
        thread: thread ?? null,
        ns: ns ?? null,
        id: id ?? null,
        beforeId: beforeId ?? null,
        limit: limit ?? -1,
      },
    }) as unknown as CheckpointRow[];
  const addThread = (thread: string, ns: string) =>
    keyOf(thread, ns) ?? (sql.addThread.get(thread, ns) as { key: number }).key;

  return {
    put: (row, blobs) =>
      attempt(() =>
        group.run(() => {
          const thread = addThread(row.thread, row.ns);
          for (const blob of blobs) putRow(sql.putBlob, { thread, ...blob });
          sql.putCheckpoint.run(thread, row.id, row.parentId, row.body, row.metadata);
          crashPoint("langgraph.put.uncommitted");
        }),
      ),
    putWrites: (threadName, ns, checkpoint, writes) =>
      attempt(() =>
        group.run(() => {
          const thread = addThread(threadName, ns);
          for (const write of writes) {
            const row = { thread, checkpoint, ...write };
            // A special write replaces the previous one, whose body must be removed.
            if (write.index < 0) sql.putWrite.run({ ...row, longId: null });
            else putRow(sql.putWrite, row);
          }
          crashPoint("langgraph.writes.uncommitted");
        }),
      ),
    find: (thread, ns, id) => attempt(() => list({ thread, ns, id, limit: 1 })[0]),
    list: (query) => attempt(() => list(query)),
    chain: (threadName, ns, channel, version) =>
      attempt(() => {
        const thread = keyOf(threadName, ns);
        if (thread === undefined) return [];
        return withBodies<BlobRow>(path, sql.chain.all({ thread, channel, version }));
      }),
    writes: (threadName, ns, checkpointId) =>
      attempt(() => {
        const thread = keyOf(threadName, ns);
        return thread === undefined ? [] : withBodies<WriteRow>(path, sql.writes.all(thread, checkpointId));
      }),
    deleteThread: (name) =>
      attempt(() =>
        group.run(() => {
          const keys = database.prepare("SELECT key FROM thread WHERE name = ?").all(name) as {
            key: number;
          }[];
          for (const { key } of keys) {
            sql.removeLong.run(key, key);
            for (const table of ["checkpoint", "blob", "pending"]) {
              database.prepare(`DELETE FROM ${table} WHERE thread = ?`).run(key);
            }
            database.prepare("DELETE FROM thread WHERE key = ?").run(key);
          }
        }),
      ),
    sizeBytes: () =>
      attempt(() =>
        ["", "-wal"].reduce(
          (sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0),
          0,
        ),
      ),
    async [Symbol.asyncDispose]() {
      if (database.isOpen) database.close();
    },
  };
}

/** The rows; throws if one has no body in `long_body`. */
function withBodies<Row>(path: string, rows: readonly Record<string, unknown>[]): Row[] {
  if (rows.every(({ body }) => body !== null)) return rows as Row[];
  throw damagedGraph(`a row of ${path} has no body`);
}
