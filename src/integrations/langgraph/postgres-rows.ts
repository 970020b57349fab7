// The saver's rows in PostgreSQL. A put is one statement and one commit, so checkpoint and blobs are stored atomically.
import type { Machine } from "../../platform/machine.ts";
import type { PostgresOptions } from "../../platform/postgres/options.ts";
import { openPostgresPool } from "../../platform/postgres/pool.ts";
import type { BlobRow, CheckpointRow, SaverRows, WriteRow } from "./rows.ts";

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE %.graph_checkpoint (
    thread    text NOT NULL,
    ns        text NOT NULL,
    id        text NOT NULL,
    parent_id text,
    body      bytea NOT NULL,
    metadata  bytea NOT NULL,
    PRIMARY KEY (thread, ns, id)
  );
  CREATE TABLE %.graph_blob (
    thread  text NOT NULL,
    ns      text NOT NULL,
    channel text NOT NULL,
    version text NOT NULL,
    base    text,
    depth   integer NOT NULL,
    keep    integer NOT NULL,
    tail    integer NOT NULL,
    type    text NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (thread, ns, channel, version)
  );
  CREATE TABLE %.graph_write (
    thread        text NOT NULL,
    ns            text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id       text NOT NULL,
    index         integer NOT NULL,
    channel       text NOT NULL,
    type          text NOT NULL,
    body          bytea NOT NULL,
    PRIMARY KEY (thread, ns, checkpoint_id, task_id, index)
  );
  `,
];

const SQL = {
  put: `
    WITH blobs AS (
      INSERT INTO %.graph_blob (thread, ns, channel, version, base, depth, keep, tail, type, body)
      SELECT $1, $2, b.* FROM unnest($7::text[], $8::text[], $9::text[], $10::int[], $11::int[], $12::int[],
                                     $13::text[], $14::bytea[]) AS b
      ON CONFLICT DO NOTHING
    )
    INSERT INTO %.graph_checkpoint (thread, ns, id, parent_id, body, metadata) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (thread, ns, id) DO UPDATE SET
      parent_id = excluded.parent_id, body = excluded.body, metadata = excluded.metadata`,
  writes: `
    INSERT INTO %.graph_write (thread, ns, checkpoint_id, task_id, index, channel, type, body)
    SELECT $1, $2, $3, w.* FROM unnest($4::text[], $5::int[], $6::text[], $7::text[], $8::bytea[]) AS w
    ON CONFLICT (thread, ns, checkpoint_id, task_id, index) DO UPDATE SET
      channel = excluded.channel, type = excluded.type, body = excluded.body WHERE graph_write.index < 0`,
  list: `
    SELECT thread, ns, id, parent_id AS "parentId", body, metadata FROM %.graph_checkpoint
    WHERE ($1::text IS NULL OR thread = $1) AND ($2::text IS NULL OR ns = $2) AND ($3::text IS NULL OR id = $3)
      AND ($4::text IS NULL OR id < $4 COLLATE "C")
    ORDER BY id COLLATE "C" DESC LIMIT $5`,
  chain: `
    WITH RECURSIVE link AS (
      SELECT * FROM %.graph_blob WHERE thread = $1 AND ns = $2 AND channel = $3 AND version = $4
      UNION ALL
      SELECT b.* FROM link JOIN %.graph_blob AS b
        ON b.thread = link.thread AND b.ns = link.ns AND b.channel = link.channel AND b.version = link.base
          AND b.depth < link.depth
    )
    SELECT channel, version, base, depth, keep, tail, type, body FROM link ORDER BY depth`,
  readWrites: `
    SELECT task_id AS "taskId", index, channel, type, body FROM %.graph_write
    WHERE thread = $1 AND ns = $2 AND checkpoint_id = $3 ORDER BY task_id COLLATE "C", index`,
  deleteThread: `
    WITH w AS (DELETE FROM %.graph_write WHERE thread = $1), b AS (DELETE FROM %.graph_blob WHERE thread = $1)
    DELETE FROM %.graph_checkpoint WHERE thread = $1`,
  sizeBytes: `
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS n FROM pg_class c
    JOIN pg_namespace s ON s.oid = c.relnamespace
    WHERE s.nspname = $1 AND c.relkind = 'r' AND c.relname LIKE 'graph%'`,
} as const;

/** Opens the saver's tables in a database; creates them if needed. */
export async function openPostgresRows(
  machine: Machine,
  connection: string,
  options: PostgresOptions,
): Promise<SaverRows> {
  const tables = { what: "the graph checkpoints", component: "langgraph", migrations: MIGRATIONS };
  const pool = await openPostgresPool(machine.clock, connection, tables, options);
  const query = <Row extends object>(name: keyof typeof SQL, ...values: readonly unknown[]) =>
    pool.query<Row>(`graph.${name}`, SQL[name], values);
  const list: SaverRows["list"] = async ({ thread, ns, id, beforeId, limit }) =>
    (
      await query<CheckpointRow>(
        "list",
        thread ?? null,
        ns ?? null,
        id ?? null,
        beforeId ?? null,
        limit ?? null,
      )
    ).rows;
  const column = <Row, Key extends keyof Row>(rows: readonly Row[], key: Key) => rows.map((row) => row[key]);

  return {
    async put(row, blobs) {
      await query(
        "put",
        ...[row.thread, row.ns, row.id, row.parentId, row.body, row.metadata],
        ...[
          column(blobs, "channel"),
          column(blobs, "version"),
          column(blobs, "base"),
          column(blobs, "depth"),
        ],
        ...[column(blobs, "keep"), column(blobs, "tail"), column(blobs, "type"), column(blobs, "body")],
      );
    },
    async putWrites(thread, ns, checkpointId, writes) {
      await query(
        "writes",
        ...[thread, ns, checkpointId, column(writes, "taskId"), column(writes, "index")],
        ...[column(writes, "channel"), column(writes, "type"), column(writes, "body")],
      );
    },
    find: async (thread, ns, id) => (await list({ thread, ns, id, limit: 1 }))[0],
    list,
    chain: async (thread, ns, channel, version) =>
      (await query<BlobRow>("chain", thread, ns, channel, version)).rows,
    writes: async (thread, ns, id) => (await query<WriteRow>("readWrites", thread, ns, id)).rows,
    async deleteThread(thread) {
      await query("deleteThread", thread);
    },
    sizeBytes: async () => (await query<{ n: number }>("sizeBytes", pool.schema)).rows[0]!.n,
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
