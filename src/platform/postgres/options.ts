// Apart from pool.ts, whose types need those of `pg`: users of the library may not have them.

/** Schema, pool size and timeouts of a PostgreSQL connection. */
export interface PostgresOptions {
  /** Default 10. */
  readonly maxConnections?: number;
  /** The schema that holds the tables, created if missing. Default `lazarus`. */
  readonly schema?: string;
  /** How long a call waits for an unreachable server. Default one minute. */
  readonly reconnectMs?: number;
}
