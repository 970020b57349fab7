// The schema of the runs database from its first version on. Migrations are never edited. The tables `message`, `effect` and
// `phase` of schema 1 are emptied into `entry` and dropped by old-rows when a journal is opened.
import type { DatabaseSpec } from "../../platform/sqlite.ts";
import { JOURNAL_TABLES, QUEUE_TABLE } from "./sqlite-schema.ts";

/** Finds the runs whose rows are still in the old tables. */
const OLD_RUNS_INDEX = "CREATE INDEX run_old ON run (key) WHERE format = 1";

const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE run (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    agent_id   TEXT NOT NULL,
    parent_id  TEXT,
    fork_of    TEXT,
    fork_seq   INTEGER NOT NULL DEFAULT 0,
    fork_step  INTEGER,
    format     INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    info       TEXT NOT NULL
  ) STRICT;
  CREATE INDEX run_by_fork ON run (fork_of) WHERE fork_of IS NOT NULL;

  CREATE TABLE head (
    key            INTEGER PRIMARY KEY REFERENCES run (key),
    status         TEXT NOT NULL,
    epoch          INTEGER NOT NULL,
    owner          TEXT,
    lease_until_ms INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    step           INTEGER NOT NULL,
    phase          INTEGER NOT NULL,
    redactions     INTEGER NOT NULL,
    input_tokens   INTEGER NOT NULL,
    output_tokens  INTEGER NOT NULL,
    updated_ms     INTEGER NOT NULL,
    output         TEXT,
    error          TEXT
  ) STRICT;
  CREATE INDEX head_open ON head (status) WHERE status IN ('running', 'needs-human');

  CREATE TABLE message (
    id    INTEGER PRIMARY KEY,
    step  INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    body  TEXT NOT NULL
  ) STRICT;

  CREATE TABLE effect (
    key            INTEGER NOT NULL REFERENCES run (key),
    step           INTEGER NOT NULL,
    call           INTEGER NOT NULL,
    call_id        TEXT NOT NULL,
    tool           TEXT NOT NULL,
    class          TEXT NOT NULL,
    state          TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    prepared_ms    INTEGER NOT NULL,
    started_ms     INTEGER,
    ended_ms       INTEGER,
    output         TEXT,
    error          TEXT,
    input_redacted INTEGER NOT NULL,
    PRIMARY KEY (key, step, call)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE phase (
    key      INTEGER NOT NULL REFERENCES run (key),
    position INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (key, position)
  ) STRICT, WITHOUT ROWID;
  `,
  "ALTER TABLE head ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0",
  JOURNAL_TABLES,
  QUEUE_TABLE,
  OLD_RUNS_INDEX,
];

/** Identity and settings of a runs database. */
export const RUNS_DATABASE: DatabaseSpec = {
  what: "the runs database",
  /** "LAZU" */
  applicationId: 0x4c415a55,
  migrations: MIGRATIONS,
  newer: "RUN_STORE_NEWER",
  foreign: "RUN_STORE_FOREIGN",
  damaged: "RUN_STORE_DAMAGED",
  locked: "RUN_STORE_UNREACHABLE",
  // Messages of 2 KB take 1.16 × their size with pages of 16 KB and 1.98 × with 4 KB; a durable save takes 0.19 or 0.16 ms.
  pageBytes: 16_384,
  walBytes: 1024 * 1024,
};
