// The PostgreSQL schema of runs and all statements on it; `%` is replaced by the schema's name. Migrations are never
// edited. A save is one statement, hence one round trip and one commit: it checks the epoch, updates the head, and
// appends messages and ledger entries, or does nothing.

import { PG_JOURNAL_TABLES, PG_QUEUE_TABLE } from "../journal/postgres-schema.ts";

/** Migration n upgrades version n to n + 1. */
export const PG_MIGRATIONS: readonly string[] = [
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
];

const RUN_COLUMNS = `
  run.id, run.agent_id AS "agentId", run.parent_id AS "parentRunId", head.status, head.epoch, head.owner,
  head.lease_until_ms AS "leaseUntilMs", head.deaths, head.seq, head.step, head.phase, run.info, head.output, head.error,
  run.fork_of AS "forkOf", run.fork_seq AS "forkSeq", run.fork_step AS "forkStep", head.redactions,
  head.input_tokens AS "inputTokens", head.output_tokens AS "outputTokens", run.format,
  run.created_ms AS "createdAtMs", head.updated_ms AS "updatedAtMs"`;

/** The rows of a run and its ancestors that make up its transcript. */
const CHAIN = `
  WITH RECURSIVE chain AS (
    SELECT run.key, run.fork_of, run.fork_seq, head.seq AS upto
    FROM %.run JOIN %.head USING (key) WHERE run.id = $1
    UNION ALL
    SELECT above.key, above.fork_of, above.fork_seq, least(chain.fork_seq, chain.upto)
    FROM chain JOIN %.run AS above ON above.id = chain.fork_of WHERE chain.fork_seq > 0
  )`;

const UPDATE_AND_APPEND = `
    WITH moved AS (
      UPDATE %.head SET
        seq = $3::int + cardinality($14::int[]), step = $4, phase = $5, status = $6, lease_until_ms = $7::bigint,
        owner = CASE WHEN $7::bigint = 0 THEN NULL ELSE owner END, redactions = redactions + $8,
        deaths = CASE WHEN cardinality($14::int[]) > 0 OR $7::bigint = 0 THEN 0 ELSE deaths END,
        input_tokens = $9, output_tokens = $10, updated_ms = $11, output = $12, error = $13
      WHERE key = (SELECT key FROM %.run WHERE id = $1) AND epoch = $2 AND seq = $3::int AND status = 'running'
      RETURNING key
    ), messages AS (
      INSERT INTO %.message (key, seq, step, phase, body)
      SELECT moved.key, m.* FROM moved, unnest($14::int[], $15::int[], $16::int[], $17::text[]) AS m`;

/** Every statement by name. */
export const PG_SQL = {
  insert: `
    WITH added AS (
      INSERT INTO %.run (id, agent_id, parent_id, fork_of, fork_seq, fork_step, format, created_ms, info)
      SELECT $1, $2, $3, $4::text, $5::int, $6, $7, $8, $9
      WHERE $4::text IS NULL OR EXISTS (
        SELECT 1 FROM %.run AS above JOIN %.head USING (key)
        WHERE above.id = $4::text AND head.status <> 'stub' AND head.seq >= $5::int)
      ON CONFLICT (id) DO NOTHING RETURNING key
    ), heads AS (
      INSERT INTO %.head (key, status, epoch, owner, lease_until_ms, seq, step, phase, redactions, input_tokens,
                          output_tokens, updated_ms, output, error)
      SELECT key, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22 FROM added
    ), messages AS (
      INSERT INTO %.message (key, seq, step, phase, body)
      SELECT added.key, m.* FROM added, unnest($23::int[], $24::int[], $25::int[], $26::text[]) AS m
    ), phases AS (
      INSERT INTO %.phase (key, position, body)
      SELECT added.key, p.* FROM added, unnest($27::int[], $28::text[]) AS p
    )
    SELECT key FROM added`,
  /** Fenced: a write with a stale epoch, to an ended run or at a wrong position changes nothing (INV-4). */
  write: `${UPDATE_AND_APPEND}
    ), effects AS (
      INSERT INTO %.effect (key, step, call, call_id, tool, class, state, attempts, prepared_ms, started_ms, ended_ms,
                            output, error, input_redacted)
      SELECT moved.key, e.step, e.call, e."callId", e.tool, e.class, e.state, e.attempts, e."preparedAtMs", e."startedAtMs",
             e."endedAtMs", e.output, e.error, e."inputRedacted"
      FROM moved, json_to_recordset($18::json) AS e (
        step int, call int, "callId" text, tool text, class text, state text, attempts int, "preparedAtMs" bigint,
        "startedAtMs" bigint, "endedAtMs" bigint, output text, error text, "inputRedacted" boolean)
      ON CONFLICT (key, step, call) DO UPDATE SET
        state = excluded.state, attempts = excluded.attempts, started_ms = excluded.started_ms,
        ended_ms = excluded.ended_ms, output = excluded.output, error = excluded.error
    ), phases AS (
      INSERT INTO %.phase (key, position, body)
      SELECT moved.key, p.* FROM moved, unnest($19::int[], $20::text[]) AS p
      ON CONFLICT (key, position) DO UPDATE SET body = excluded.body
    )
    SELECT key FROM moved`,
  /** The same for a step that has only messages: a shorter statement is planned faster. */
  writeMessages: `${UPDATE_AND_APPEND}
    )
    SELECT key FROM moved`,
  readRun: `SELECT ${RUN_COLUMNS} FROM %.run JOIN %.head USING (key) WHERE run.id = $1`,
  readBody: "SELECT body FROM %.message WHERE key = (SELECT key FROM %.run WHERE id = $1) AND seq = $2",
  readMessages: `${CHAIN}
    SELECT message.seq, message.step, message.phase, message.body FROM chain
    JOIN %.message ON message.key = chain.key AND message.seq >= chain.fork_seq AND message.seq < chain.upto
    ORDER BY message.seq`,
  countMessages: `${CHAIN}
    SELECT count(*) AS n FROM chain
    JOIN %.message ON message.key = chain.key AND message.seq >= chain.fork_seq AND message.seq < chain.upto`,
  readEffects: `
    SELECT step, call, call_id AS "callId", tool, class, state, attempts, prepared_ms AS "preparedAtMs",
           started_ms AS "startedAtMs", ended_ms AS "endedAtMs", output, error, input_redacted AS "inputRedacted"
    FROM %.effect WHERE key = (SELECT key FROM %.run WHERE id = $1) ORDER BY step, call`,
  readPhases: `
    SELECT position, body FROM %.phase WHERE key = (SELECT key FROM %.run WHERE id = $1) ORDER BY position`,
  listRuns: `
    SELECT ${RUN_COLUMNS} FROM %.run JOIN %.head USING (key)
    WHERE head.status <> 'stub' AND ($1::text[] IS NULL OR head.status = ANY ($1)) AND ($2::text IS NULL OR agent_id = $2)
    ORDER BY run.key DESC LIMIT $3`,
  swapLease: `
    UPDATE %.head SET epoch = epoch + 1, owner = $3, lease_until_ms = $4, updated_ms = $5, deaths = deaths + 1
    WHERE key = (SELECT key FROM %.run WHERE id = $1) AND epoch = $2 AND status = 'running'`,
  renewLease: `
    UPDATE %.head SET lease_until_ms = $3
    WHERE key = (SELECT key FROM %.run WHERE id = $1) AND epoch = $2 AND status = 'running'`,
  releaseLease: `
    UPDATE %.head SET lease_until_ms = 0, owner = NULL, deaths = 0
    WHERE key = (SELECT key FROM %.run WHERE id = $1) AND epoch = $2`,
  settleEffect: `
    WITH fenced AS (
      UPDATE %.head SET epoch = epoch + 1, updated_ms = $8::bigint, deaths = 0,
        status = CASE WHEN status = 'needs-human' AND NOT EXISTS (
          SELECT 1 FROM %.effect WHERE effect.key = head.key AND state = 'unknown' AND NOT (step = $3 AND call = $4)
        ) THEN 'running' ELSE status END
      WHERE key = (SELECT key FROM %.run WHERE id = $1) AND epoch = $2 RETURNING key
    )
    UPDATE %.effect SET state = $5::text, output = $6, error = $7,
      ended_ms = CASE WHEN $5::text = 'prepared' THEN NULL ELSE $8::bigint END
    FROM fenced WHERE effect.key = fenced.key AND step = $3 AND call = $4`,
  listLineage: `
    SELECT run.id, head.status, head.epoch, head.seq, head.updated_ms AS "updatedAtMs",
           run.fork_of AS "forkOf", run.fork_seq AS "forkSeq", run.format,
           (SELECT count(*) FROM %.effect WHERE effect.key = run.key AND state = 'unknown') AS "unknownEffects"
    FROM %.run JOIN %.head USING (key) ORDER BY run.key`,
  /** Blocks new runs and other prunes, but not saves. */
  lockRuns: "LOCK TABLE %.run IN SHARE ROW EXCLUSIVE MODE",
  stub: `
    WITH found AS (SELECT key FROM %.run WHERE id = $1),
      m AS (DELETE FROM %.message USING found WHERE message.key = found.key AND seq >= $2),
      e AS (DELETE FROM %.effect USING found WHERE effect.key = found.key),
      p AS (DELETE FROM %.phase USING found WHERE phase.key = found.key)
    UPDATE %.head SET status = 'stub', owner = NULL, lease_until_ms = 0, epoch = epoch + 1
    FROM found WHERE head.key = found.key AND head.epoch = $3`,
  removeContent: `
    WITH found AS (SELECT key FROM %.run WHERE id = $1),
      m AS (DELETE FROM %.message USING found WHERE message.key = found.key),
      e AS (DELETE FROM %.effect USING found WHERE effect.key = found.key),
      p AS (DELETE FROM %.phase USING found WHERE phase.key = found.key)
    DELETE FROM %.head USING found WHERE head.key = found.key AND head.epoch = $2`,
  removeRun: "DELETE FROM %.run WHERE id = $1",
  sizeBytes: `
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS n FROM pg_class c
    JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = $1 AND c.relkind = 'r'`,
} as const;
