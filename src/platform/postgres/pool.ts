// Connections to PostgreSQL: a pool that survives a server restart, migrations under an advisory lock, and clear errors.
// `pg` is an optional peer dependency, loaded only here.

import type { Client, PoolClient, PoolConfig, QueryResultRow } from "pg";
import type { Clock } from "../clock.ts";
import { LazarusError, messageOf } from "../errors.ts";
import { sha256Hex } from "../sha256.ts";
import type { PostgresOptions } from "./options.ts";

/** A pool of connections to one schema that reconnects. */
export interface PostgresPool extends AsyncDisposable {
  readonly schema: string;
  /** Server and database, without the password. */
  readonly place: string;
  /** Runs a prepared statement, and retries it while the server is unreachable. */
  query<Row extends QueryResultRow>(
    name: string,
    sql: string,
    values: readonly unknown[],
  ): Promise<QueryResult<Row>>;
  inTransaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T>;
  /** Calls `hear` with each NOTIFY on a channel, on a separate connection, until that breaks or the signal aborts. */
  listen(channel: string, listener: NotifyListener, signal: AbortSignal): Promise<void>;
}

export interface NotifyListener {
  /** The channel is being listened to: no later NOTIFY is missed. */
  ready(): void;
  hear(payload: string): void;
}

export interface QueryResult<Row> {
  readonly rows: Row[];
  readonly count: number;
  /** True after a retry: an earlier attempt may have been executed although its response was lost. */
  readonly repeated: boolean;
}

/** The tables of one component. Several components can share a schema. */
export interface PostgresSpec {
  readonly what: string;
  /** Its name in the table of schema versions. */
  readonly component: string;
  readonly migrations: readonly string[];
}

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const INT8 = 20;
const NUMERIC = 1700;
const DEFAULT_RECONNECT_MS = 60_000;
const MIN_RESPONSE_TIMEOUT_MS = 1000;
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2000;
/** "LAZR", so that no other program uses the same lock. */
const MIGRATION_LOCK = 0x4c415a52;

/** Connects and migrates the schema. */
export async function openPostgresPool(
  clock: Clock,
  connection: string,
  spec: PostgresSpec,
  options: PostgresOptions = {},
): Promise<PostgresPool> {
  const { default: pg } = await import("pg").catch((error: unknown) => {
    throw new LazarusError(
      "PEER_MISSING",
      `${spec.what} in PostgreSQL requires the package pg, which is not installed`,
      {
        hint: "npm install pg",
        cause: error,
      },
    );
  });
  const schema = options.schema ?? "lazarus";
  if (!SCHEMA_NAME.test(schema)) {
    throw new LazarusError("USAGE", `${JSON.stringify(schema)} is not a valid schema name`, {
      hint: "use lowercase letters, digits and _",
    });
  }
  const place = placeOf(connection);
  const reconnectMs = options.reconnectMs ?? DEFAULT_RECONNECT_MS;
  // A frozen or disconnected server never responds: without a timeout, callers would wait forever.
  const responseTimeoutMs = Math.max(reconnectMs, MIN_RESPONSE_TIMEOUT_MS);
  const config: PoolConfig = {
    connectionString: connection,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: responseTimeoutMs,
    query_timeout: responseTimeoutMs,
    keepAlive: true,
    // pg returns 64-bit integers as text; milliseconds and counts fit into a number.
    types: {
      getTypeParser: (oid: number, format?: string) =>
        oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format as "text"),
    } as NonNullable<PoolConfig["types"]>,
  };
  const pool = new pg.Pool(config);
  // A stopping server closes connections, both idle ones and those in a transaction. Without a listener the error would
  // end the process, and the pool itself listens on idle ones only.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  const withRetry = async <T>(work: (repeated: boolean) => Promise<T>): Promise<T> => {
    const deadline = clock.monotonicMs() + reconnectMs;
    for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
      try {
        return await work(waitMs > FIRST_RETRY_MS);
      } catch (error) {
        if (!isUnavailable(error)) throw postgresError(error, spec.what, place);
        if (clock.monotonicMs() >= deadline) throw unreachable(error, spec.what, place);
        await clock.sleep(waitMs);
      }
    }
  };
  const inTransaction = <T>(work: (client: PoolClient) => Promise<T>): Promise<T> =>
    withRetry(async () => {
      const client = await pool.connect();
      let broken: Error | undefined;
      try {
        await client.query("BEGIN");
        const result = await work(client);
        await client.query("COMMIT");
        return result;
      } catch (error) {
        await client.query("ROLLBACK").catch((failure: Error) => {
          broken = failure;
        });
        throw error;
      } finally {
        client.release(broken);
      }
    });

  try {
    await inTransaction((client) => migrate(client, schema, spec, place));
  } catch (error) {
    await pool.end().catch(() => {});
    throw error;
  }
  // The server cuts names after 63 characters, and two statements with one name would be mistaken for each other.
  const prefix = sha256Hex(schema).slice(0, 12);
  return {
    schema,
    place,
    query: (name, text, values) =>
      withRetry(async (repeated) => {
        const result = await pool.query({
          name: `${prefix}.${name}`,
          text: text.replaceAll("%.", `${schema}.`),
          values: [...values],
        });
        return { rows: result.rows, count: result.rowCount ?? 0, repeated };
      }),
    inTransaction,
    listen: (channel, listener, signal) => listen(new pg.Client(config), channel, listener, signal),
    async [Symbol.asyncDispose]() {
      await pool.end();
    },
  };
}

async function listen(
  client: Client,
  channel: string,
  { ready, hear }: NotifyListener,
  signal: AbortSignal,
): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    for (const event of ["error", "end"] as const) client.on(event, () => resolve());
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  client.on("notification", ({ payload }) => hear(payload ?? ""));
  try {
    await client.connect();
    await client.query(`LISTEN ${channel}`);
    ready();
    if (!signal.aborted) await ended;
  } finally {
    await client.end().catch(() => {});
  }
}

async function migrate(client: PoolClient, schema: string, spec: PostgresSpec, place: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${schema}.room (name text PRIMARY KEY, version integer NOT NULL)`,
  );
  const { rows } = await client.query(`SELECT version FROM ${schema}.room WHERE name = $1`, [spec.component]);
  const version: number = rows[0]?.version ?? 0;
  if (version > spec.migrations.length) {
    throw new LazarusError(
      "RUN_STORE_NEWER",
      `${spec.what} in ${place} has schema ${version}; this version of Lazarus supports up to ${spec.migrations.length}`,
      { hint: "upgrade Lazarus on this machine: npm install lazarus@latest" },
    );
  }
  if (version === spec.migrations.length) return;
  for (const migration of spec.migrations.slice(version)) {
    await client.query(migration.replaceAll("%.", `${schema}.`));
  }
  await client.query(
    `INSERT INTO ${schema}.room VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = excluded.version`,
    [spec.component, spec.migrations.length],
  );
}

const UNAVAILABLE = new Set([
  ...[
    "ECONNREFUSED",
    "ECONNRESET",
    "EPIPE",
    "ENOENT",
    "ETIMEDOUT",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "EAI_AGAIN",
  ],
  // Shutting down, crashed, starting up; too many connections; a standby not yet promoted.
  ...["57P01", "57P02", "57P03", "53300", "25006"],
  // Serialization failure or deadlock: the transaction was rolled back.
  ...["40001", "40P01"],
]);

/** Whether a retry may succeed. Callers make their statements safe to repeat. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof LazarusError) return false;
  const code = "code" in error ? String(error.code) : "";
  return (
    UNAVAILABLE.has(code) ||
    code.startsWith("08") ||
    /^Connection terminated|connection error|timeout/i.test(error.message)
  );
}

function unreachable(error: unknown, what: string, place: string): LazarusError {
  return new LazarusError("RUN_STORE_UNREACHABLE", `${what} in ${place} cannot be reached`, {
    hint: `pg_isready -d ${place}`,
    cause: error,
  });
}

function postgresError(error: unknown, what: string, place: string): LazarusError {
  if (error instanceof LazarusError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const because = messageOf(error);
  if (code === "53100") {
    return new LazarusError("DISK_FULL", `${what} in ${place}: the server's disk is full`, {
      hint: "free disk space on the server, then run the same command again",
      cause: error,
    });
  }
  if (code === "58030") {
    return new LazarusError("DISK_IO", `${what} in ${place}: the server cannot read or write its disk`, {
      hint: "check the server's log",
      cause: error,
    });
  }
  // Unknown host, or out of memory, locks or connections: temporary, and not caused by the statement.
  if (code === "ENOTFOUND" || code.startsWith("53")) return unreachable(error, what, place);
  if (code === "3D000") {
    return new LazarusError("NOT_FOUND", `${what} in ${place}: ${because}`, {
      hint: `createdb --maintenance-db=${place.replace(/[^/]*$/, "postgres")} ${place.replace(/^.*\//, "")}`,
      cause: error,
    });
  }
  if (code.startsWith("28") || code === "42501") {
    return new LazarusError("PERMISSION", `${what} in ${place}: ${because}`, {
      hint: "check user, password and privileges",
      cause: error,
    });
  }
  return new LazarusError("INTERNAL", `${what} in ${place}: ${because}`, { cause: error });
}

function placeOf(connection: string): string {
  try {
    const url = new URL(connection);
    url.password = "";
    return url.href;
  } catch {
    return "PostgreSQL";
  }
}
