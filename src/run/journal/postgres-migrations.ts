// The schema of the run tables in PostgreSQL from its first version on; `%` is replaced by the schema's name. Migrations are
// never edited. The tables `message`, `effect` and `phase` of schema 1 are emptied into `entry` and dropped by old-rows.
import type { PostgresSpec } from "../../platform/postgres/pool.ts";
import { PG_JOURNAL_TABLES, PG_QUEUE_TABLE } from "./postgres-schema.ts";

/** Migration n upgrades version n to n + 1. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE %.run (
    key        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         text NOT NULL UNIQUE,
    agent_id   text NOT NULL,
    parent_id  text,
    fork_of    text,
    fork_seq   integer NOT NULL DEFAULT 0,
    fork_step  integer,
    format     integer NOT NULL,
    created_ms bigint NOT NULL,
    info       text NOT NULL
  );
  CREATE INDEX run_by_fork ON %.run (fork_of) WHERE fork_of IS NOT NULL;

  -- Rewritten at every step: free space on each page allows HOT updates, which do not touch an index.
  CREATE TABLE %.head (
    key            bigint PRIMARY KEY REFERENCES %.run (key),
    status         text NOT NULL,
    epoch          integer NOT NULL,
    owner          text,
    lease_until_ms bigint NOT NULL,
    seq            integer NOT NULL,
    step           integer NOT NULL,
    phase          integer NOT NULL,
    redactions     integer NOT NULL,
    input_tokens   bigint NOT NULL,
    output_tokens  bigint NOT NULL,
    updated_ms     bigint NOT NULL,
    output         text,
    error          text
  ) WITH (fillfactor = 50);
  CREATE INDEX head_open ON %.head (status) WHERE status IN ('running', 'needs-human');

  CREATE TABLE %.message (
    key   bigint NOT NULL,
    seq   integer NOT NULL,
    step  integer NOT NULL,
    phase integer NOT NULL,
    body  text NOT NULL,
    PRIMARY KEY (key, seq)
  ) WITH (toast_tuple_target = 8160);

  CREATE TABLE %.effect (
    key            bigint NOT NULL,
    step           integer NOT NULL,
    call           integer NOT NULL,
    call_id        text NOT NULL,
    tool           text NOT NULL,
    class          text NOT NULL,
    state          text NOT NULL,
    attempts       integer NOT NULL,
    prepared_ms    bigint NOT NULL,
    started_ms     bigint,
    ended_ms       bigint,
    output         text,
    error          text,
    input_redacted boolean NOT NULL,
    PRIMARY KEY (key, step, call)
  );

  CREATE TABLE %.phase (
    key      bigint NOT NULL,
    position integer NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (key, position)
  );
  `,
  "ALTER TABLE %.head ADD COLUMN deaths integer NOT NULL DEFAULT 0",
  PG_JOURNAL_TABLES,
  PG_QUEUE_TABLE,
  "CREATE INDEX run_old ON %.run (key) WHERE format = 1",
];

/** The tables of runs. */
export const RUN_TABLES: PostgresSpec = { what: "the run store", component: "run", migrations: MIGRATIONS };
