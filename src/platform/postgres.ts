// The connection to PostgreSQL: a pool that survives a server which stops and comes back, the migrations under an
// advisory lock, and plain words for what went wrong. `pg` is an optional peer, loaded here and nowhere else.
import type { PoolClient, PoolConfig, QueryResultRow } from "pg";
import type { Clock } from "./clock.ts";
import { LazarusError } from "./errors.ts";

/** How to use the server. */
export interface PostgresOptions {
  /** Connections at most; 10 unless told. */
  readonly maxConnections?: number;
  /** The schema that holds the tables; `lazarus` unless told. Made if it is not there. */
  readonly schema?: string;
  /** How long a call waits for a server that is away; a minute unless told. */
  readonly reconnectMs?: number;
}

/** A patient connection to one schema. */
export interface PostgresPool extends AsyncDisposable {
  readonly schema: string;
  /** Server and database, without the password. */
  readonly place: string;
  /** Runs one statement as a prepared one. Repeated until it is answered, while the server is away. */
  query<Row extends QueryResultRow>(
    name: string,
    sql: string,
    values: readonly unknown[],
  ): Promise<Answer<Row>>;
  inTransaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T>;
}

/** What a statement brought. */
export interface Answer<Row> {
  readonly rows: Row[];
  readonly count: number;
  /** True when an earlier try may have been carried out without its answer reaching us. */
  readonly repeated: boolean;
}

/** What a room keeps in a schema, so that two rooms can share one database. */
export interface PostgresSpec {
  readonly what: string;
  readonly room: string;
  readonly migrations: readonly string[];
}

const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const INT8 = 20;
const NUMERIC = 1700;
const DEFAULT_RECONNECT_MS = 60_000;
const SHORTEST_SILENCE_MS = 1000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 2000;
/** "LAZR", so that the lock is nobody else's. */
const MIGRATION_LOCK = 0x4c415a52;

/** Connects, and brings the schema up to date. */
export async function openPostgresPool(
  clock: Clock,
  connection: string,
  spec: PostgresSpec,
  options: PostgresOptions = {},
): Promise<PostgresPool> {
  const { default: pg } = await import("pg").catch((error: unknown) => {
    throw new LazarusError("PEER_MISSING", "runs in PostgreSQL need the package pg, which is not installed", {
      hint: "npm install pg",
      cause: error,
    });
  });
  const schema = options.schema ?? "lazarus";
  if (!SCHEMA_NAME.test(schema)) {
    throw new LazarusError("USAGE", `${JSON.stringify(schema)} cannot name a schema`, {
      hint: "use lower-case letters, digits and _",
    });
  }
  const place = placeOf(connection);
  const reconnectMs = options.reconnectMs ?? DEFAULT_RECONNECT_MS;
  // A server that is frozen or cut off says nothing at all: without these a run would wait for it for ever.
  const silenceMs = Math.max(reconnectMs, SHORTEST_SILENCE_MS);
  const config: PoolConfig = {
    connectionString: connection,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: silenceMs,
    query_timeout: silenceMs,
    keepAlive: true,
    // Milliseconds and counts fit a number; pg hands out text for 64 bits.
    types: {
      getTypeParser: (oid: number, format?: string) =>
        oid === INT8 || oid === NUMERIC ? Number : pg.types.getTypeParser(oid, format as "text"),
    } as NonNullable<PoolConfig["types"]>,
  };
  const pool = new pg.Pool(config);
  // A server that goes away ends connections, idle ones and those between two statements of a transaction; without a
  // listener that would end the process. The pool listens to the idle ones only.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));

  const patiently = async <T>(work: (repeated: boolean) => Promise<T>): Promise<T> => {
    const deadline = clock.monotonicMs() + reconnectMs;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        return await work(waitMs > FIRST_WAIT_MS);
      } catch (error) {
        if (!isAway(error)) throw postgresError(error, spec.what, place);
        if (clock.monotonicMs() >= deadline) throw unreachable(error, spec.what, place);
        await clock.sleep(waitMs);
      }
    }
  };
  const inTransaction = <T>(work: (client: PoolClient) => Promise<T>): Promise<T> =>
    patiently(async () => {
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
  return {
    schema,
    place,
    query: (name, text, values) =>
      patiently(async (repeated) => {
        const answer = await pool.query({
          name: `${schema}.${name}`,
          text: text.replaceAll("%.", `${schema}.`),
          values: [...values],
        });
        return { rows: answer.rows, count: answer.rowCount ?? 0, repeated };
      }),
    inTransaction,
    async [Symbol.asyncDispose]() {
      await pool.end();
    },
  };
}

async function migrate(client: PoolClient, schema: string, spec: PostgresSpec, place: string): Promise<void> {
  await client.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${schema}.room (name text PRIMARY KEY, version integer NOT NULL)`,
  );
  const { rows } = await client.query(`SELECT version FROM ${schema}.room WHERE name = $1`, [spec.room]);
  const version: number = rows[0]?.version ?? 0;
  if (version > spec.migrations.length) {
    throw new LazarusError(
      "RUN_STORE_NEWER",
      `${spec.what} in ${place} has schema ${version}; this Lazarus knows up to ${spec.migrations.length} and will not touch it`,
      { hint: "upgrade Lazarus on this machine: npm install lazarus@latest" },
    );
  }
  if (version === spec.migrations.length) return;
  for (const migration of spec.migrations.slice(version)) {
    await client.query(migration.replaceAll("%.", `${schema}.`));
  }
  await client.query(
    `INSERT INTO ${schema}.room VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET version = excluded.version`,
    [spec.room, spec.migrations.length],
  );
}

const AWAY = new Set([
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
  // Shutting down, crashed, starting up; no connection left; a standby that is not the primary yet.
  ...["57P01", "57P02", "57P03", "53300", "25006"],
  // Two transactions in each other's way: one of them was undone.
  ...["40001", "40P01"],
]);

/** Whether the server may be back in a moment. A statement that was cut short is safe to repeat: see `diagnoseWrite`. */
function isAway(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof LazarusError) return false;
  const code = "code" in error ? String(error.code) : "";
  return (
    AWAY.has(code) ||
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
  const because = error instanceof Error ? error.message : String(error);
  if (code === "53100") {
    return new LazarusError("DISK_FULL", `${what} in ${place}: the server's disk is full`, {
      hint: "make room on the server; the run is resumed at the next boot",
      cause: error,
    });
  }
  if (code === "58030") {
    return new LazarusError("DISK_IO", `${what} in ${place}: the server cannot read or write its disk`, {
      hint: "look into the server's log",
      cause: error,
    });
  }
  // Not found by name, or short of memory, locks or connections: nothing that the run did wrong.
  if (code === "ENOTFOUND" || code.startsWith("53")) return unreachable(error, what, place);
  if (code === "3D000") {
    return new LazarusError("NOT_FOUND", `${what} in ${place}: ${because}`, {
      hint: `createdb --maintenance-db=${place.replace(/[^/]*$/, "postgres")} ${place.replace(/^.*\//, "")}`,
      cause: error,
    });
  }
  if (code.startsWith("28") || code === "42501") {
    return new LazarusError("PERMISSION", `${what} in ${place}: ${because}`, {
      hint: "check user, password and rights",
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
