// The SQLite schema of runs and all statements on it. Migrations are never edited. Columns that change at every step are
// in `head` and those that never change in `run`, so that a save rewrites 100 bytes and not the input. A message's row
// id is run key × 2²² + position: one B-tree without a second index, with the messages of a run adjacent.
import type { DatabaseSpec } from "../../platform/sqlite.ts";
import { JOURNAL_TABLES, QUEUE_TABLE } from "../journal/sqlite-schema.ts";

/** Maximum number of messages in a run. */
export const MESSAGES_PER_RUN = 2 ** 22;

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
  // 2 KB messages: 1.16 × their size on 16 KB pages, 1.98 × on 4 KB ones, at 0.19 against 0.16 ms a durable save.
  pageBytes: 16_384,
  walBytes: 1024 * 1024,
};

const RUN_COLUMNS = `
  run.id, run.agent_id AS agentId, run.parent_id AS parentRunId, head.status, head.epoch, head.owner,
  head.lease_until_ms AS leaseUntilMs, head.deaths, head.seq, head.step, head.phase, run.info, head.output, head.error,
  run.fork_of AS forkOf, run.fork_seq AS forkSeq, run.fork_step AS forkStep, head.redactions,
  head.input_tokens AS inputTokens, head.output_tokens AS outputTokens, run.format,
  run.created_ms AS createdAtMs, head.updated_ms AS updatedAtMs`;

/** Fenced: a write with a stale epoch, to an ended run or at a wrong position changes nothing (INV-4). */
const moveHead = (status: string) => `
    UPDATE head SET ${status}
      seq = :toSeq, step = :step, phase = :phase, lease_until_ms = :leaseUntilMs,
      owner = CASE WHEN :leaseUntilMs = 0 THEN NULL ELSE owner END,
      deaths = CASE WHEN :toSeq > :fromSeq OR :leaseUntilMs = 0 THEN 0 ELSE deaths END,
      redactions = redactions + :redactions,
      input_tokens = :inputTokens, output_tokens = :outputTokens, updated_ms = :nowMs, output = :output, error = :error
    WHERE key = (SELECT key FROM run WHERE id = :runId) AND epoch = :epoch AND seq = :fromSeq AND status = 'running'
    RETURNING key`;

/** Every statement by name. */
export const SQL = {
  insertRun: `
    INSERT INTO run (id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info)
    SELECT :id, :agentId, :parentRunId, :forkOf, :forkSeq, :forkStep, :format, :createdAtMs, :info
    WHERE :forkOf IS NULL OR EXISTS (
      SELECT 1 FROM run AS above JOIN head USING (key)
      WHERE above.id = :forkOf AND head.status <> 'stub' AND head.seq >= :forkSeq)
    ON CONFLICT (id) DO NOTHING RETURNING key`,
  insertHead: `
    INSERT INTO head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens,
                      output_tokens, updated_ms, output, error)
    VALUES (:key, :status, :epoch, :owner, :leaseUntilMs, :seq, :step, :phase, :redactions, :inputTokens,
            :outputTokens, :updatedAtMs, :output, :error)`,
  /** A step of a run that continues. It does not set the status: SQLite would rewrite a page of the status index. */
  moveHead: moveHead(""),
  /** A step that ends or parks the run. */
  endHead: moveHead("status = :status,"),
  insertMessage: "INSERT INTO message (id, step, phase, body) VALUES (?, ?, ?, ?)",
  putEffect: `
    INSERT INTO effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms,
                        output, error, input_redacted)
    VALUES (:key, :step, :call, :callId, :tool, :class, :state, :attempts, :preparedAtMs, :startedAtMs, :endedAtMs,
            :output, :error, :inputRedacted)
    ON CONFLICT (key, step, call) DO UPDATE SET
      state = excluded.state, attempts = excluded.attempts, started_ms = excluded.started_ms,
      ended_ms = excluded.ended_ms, output = excluded.output, error = excluded.error`,
  putPhase: `
    INSERT INTO phase (key, position, body) VALUES (?, ?, ?)
    ON CONFLICT (key, position) DO UPDATE SET body = excluded.body`,
  readRun: `SELECT run.key, ${RUN_COLUMNS} FROM run JOIN head USING (key) WHERE run.id = ?`,
  listRuns: `
    SELECT ${RUN_COLUMNS} FROM run JOIN head USING (key)
    WHERE head.status <> 'stub' AND (:statuses IS NULL OR head.status IN (SELECT value FROM json_each(:statuses)))
      AND (:agentId IS NULL OR run.agent_id = :agentId)
    ORDER BY run.key DESC LIMIT :limit`,
  readMessages: "SELECT id, step, phase, body FROM message WHERE id >= :first AND id < :end ORDER BY id",
  readEffects: `
    SELECT step, call, call_id AS callId, tool, class, state, attempts, prepared_ms AS preparedAtMs,
           started_ms AS startedAtMs, ended_ms AS endedAtMs, output, error, input_redacted AS inputRedacted
    FROM effect WHERE key = (SELECT key FROM run WHERE id = ?) ORDER BY step, call`,
  readPhases:
    "SELECT position, body FROM phase WHERE key = (SELECT key FROM run WHERE id = ?) ORDER BY position",
  swapLease: `
    UPDATE head SET epoch = epoch + 1, owner = :owner, lease_until_ms = :leaseUntilMs, updated_ms = :nowMs,
      deaths = deaths + 1
    WHERE key = (SELECT key FROM run WHERE id = :runId) AND epoch = :seenEpoch AND status = 'running'`,
  renewLease: `
    UPDATE head SET lease_until_ms = :leaseUntilMs
    WHERE key = (SELECT key FROM run WHERE id = :runId) AND epoch = :epoch AND status = 'running'`,
  releaseLease: `
    UPDATE head SET lease_until_ms = 0, owner = NULL, deaths = 0
    WHERE key = (SELECT key FROM run WHERE id = :runId) AND epoch = :epoch`,
  fenceSettlement: `
    UPDATE head SET epoch = epoch + 1, updated_ms = :nowMs, deaths = 0
    WHERE key = (SELECT key FROM run WHERE id = :runId) AND epoch = :seenEpoch RETURNING key`,
  settleEffect: `
    UPDATE effect SET state = :state, output = :output, error = :error,
      ended_ms = CASE WHEN :state = 'prepared' THEN NULL ELSE :nowMs END
    WHERE key = :key AND step = :step AND call = :call`,
  reopenSettled: `
    UPDATE head SET status = 'running', owner = NULL, lease_until_ms = 0
    WHERE key = :key AND status = 'needs-human'
      AND NOT EXISTS (SELECT 1 FROM effect WHERE effect.key = :key AND state = 'unknown')`,
  listLineage: `
    SELECT run.id, head.status, head.epoch, head.seq, head.updated_ms AS updatedAtMs,
           run.fork_of AS forkOf, run.fork_seq AS forkSeq, run.format,
           (SELECT count(*) FROM effect WHERE effect.key = run.key AND state = 'unknown') AS unknownEffects
    FROM run JOIN head USING (key) ORDER BY run.key`,
  findKey: "SELECT key FROM run WHERE id = ?",
  removeMessages: "DELETE FROM message WHERE id >= :first AND id < :end",
  countMessages: "SELECT count(*) AS n FROM message WHERE id >= :first AND id < :end",
  removeEffects: "DELETE FROM effect WHERE key = ?",
  removePhases: "DELETE FROM phase WHERE key = ?",
  removeHead: "DELETE FROM head WHERE key = ?",
  removeRun: "DELETE FROM run WHERE key = ?",
  makeStub:
    "UPDATE head SET status = 'stub', owner = NULL, lease_until_ms = 0, epoch = epoch + 1 WHERE key = ?",
} as const;
