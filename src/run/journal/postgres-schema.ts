// The PostgreSQL tables of the journal and all statements on them; `%` is replaced by the schema's name. What matters is
// commits and CPU per write, so the writes of all waiting runs are one statement: heads and entries arrive as arrays, each
// run is fenced on its own, and what is not returned was refused.

/** Migration 2 → 3 of the run tables. Never edited. */
export const PG_JOURNAL_TABLES = `
  ALTER TABLE %.run
    ADD COLUMN queue text, ADD COLUMN caller text, ADD COLUMN priority integer NOT NULL DEFAULT 0,
    ADD COLUMN model text, ADD COLUMN thread text, ADD COLUMN definition text;
  CREATE INDEX run_by_parent ON %.run (parent_id) WHERE parent_id IS NOT NULL;
  CREATE INDEX run_by_thread ON %.run (thread) WHERE thread IS NOT NULL;

  ALTER TABLE %.head
    ADD COLUMN messages integer NOT NULL DEFAULT 0, ADD COLUMN wake_ms bigint, ADD COLUMN cancel_ms bigint;
  UPDATE %.head SET messages = seq;
  CREATE INDEX head_ready ON %.head (status) WHERE status IN ('queued', 'waiting');

  CREATE TABLE %.entry (
    key        bigint NOT NULL,
    step       integer NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    call       bigint NOT NULL,
    seq        integer NOT NULL,
    state      text NOT NULL,
    attempts   integer NOT NULL,
    due_ms     bigint,
    digest     text,
    name       text,
    class      text,
    call_id    text,
    started_ms bigint,
    ended_ms   bigint,
    redacted   boolean NOT NULL,
    body       text,
    PRIMARY KEY (key, step, kind, call)
  ) WITH (toast_tuple_target = 8160);
  CREATE INDEX entry_unknown ON %.entry (key) WHERE state = 'unknown';

  CREATE TABLE %.wait (
    key    bigint NOT NULL,
    id     text NOT NULL,
    kind   text NOT NULL,
    step   integer NOT NULL,
    call   bigint NOT NULL,
    names  text[] NOT NULL,
    state  text NOT NULL,
    due_ms bigint,
    digest text,
    answer text,
    PRIMARY KEY (key, id)
  );

  CREATE TABLE %.inbox (
    position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key      bigint NOT NULL,
    id       text NOT NULL,
    name     text NOT NULL,
    body     text NOT NULL,
    sent_ms  bigint NOT NULL,
    taken    boolean NOT NULL DEFAULT false,
    UNIQUE (key, id)
  );

  -- Parts of a response that is being streamed need not survive the server.
  CREATE UNLOGGED TABLE %.part (
    key      bigint NOT NULL,
    step     integer NOT NULL,
    position integer NOT NULL,
    epoch    integer NOT NULL,
    body     text NOT NULL,
    PRIMARY KEY (key, step, position)
  );

  -- Rate limits of queues, and the last tick of each schedule that was handled.
  CREATE TABLE %.bucket (name text PRIMARY KEY, "left" double precision NOT NULL, at_ms bigint NOT NULL);
  CREATE TABLE %.tick (schedule text PRIMARY KEY, tick_ms bigint NOT NULL);

  -- Ids of pruned runs: an id is never used for two runs.
  CREATE TABLE %.pruned (id text PRIMARY KEY);
  `;

/** Migration 3 → 4: the limits of queues. Never edited. */
export const PG_QUEUE_TABLE = "CREATE TABLE %.queue (name text PRIMARY KEY, settings jsonb NOT NULL)";

const HEAD = `
  run.key, run.id, run.agent_id AS "agentId", run.parent_id AS "parentRunId", run.fork_of AS "forkOf",
  run.fork_step AS "forkStep", run.format, run.created_ms AS "createdAtMs", run.queue, run.caller, run.priority,
  run.model, run.thread, run.definition, run.info, head.status, head.epoch, head.owner, head.lease_until_ms AS "leaseUntilMs",
  head.deaths, head.seq, head.step, head.phase, head.messages, head.redactions, head.input_tokens AS "inputTokens",
  head.output_tokens AS "outputTokens", head.wake_ms AS "wakeMs", head.cancel_ms AS "cancelMs",
  head.updated_ms AS "updatedAtMs", head.output, head.error`;

const ENTRY = `
  entry.seq, entry.step, entry.kind, entry.call, entry.state, entry.attempts, entry.due_ms AS "dueMs", entry.digest,
  entry.name, entry.class, entry.call_id AS "callId", entry.started_ms AS "startedMs", entry.ended_ms AS "endedMs",
  entry.redacted`;

const ENTRY_COLUMNS = `step, kind, call, state, attempts, due_ms, digest, name, class, call_id, started_ms, ended_ms,
                       redacted, body`;

const RUN_COLUMNS = `id, agent_id, parent_id, fork_of, fork_step, format, created_ms, queue, caller, priority, model,
                     thread, definition, info`;

const HEAD_COLUMNS = `status, epoch, owner, lease_until_ms, deaths, seq, step, phase, messages, redactions, input_tokens,
                      output_tokens, wake_ms, cancel_ms, updated_ms, output, error`;

/** Parameters of entries as arrays, from number `n` on: the position of their write in the batch, then the columns. */
const unnestEntries = (n: number) => {
  const types = ["int", "int", "text", "bigint", "text", "int", "bigint", "text", "text", "text", "text"];
  const all = [...types, "bigint", "bigint", "boolean", "text"];
  return `unnest(${all.map((type, i) => `$${n + i}::${type}[]`).join(", ")}) AS e (write, ${ENTRY_COLUMNS})`;
};

const putEntries = (select: string) => `
      INSERT INTO %.entry (key, seq, ${ENTRY_COLUMNS}) ${select}
      ON CONFLICT (key, step, kind, call) DO UPDATE SET
        seq = excluded.seq, state = excluded.state, attempts = excluded.attempts, due_ms = excluded.due_ms,
        digest = excluded.digest, name = excluded.name, class = excluded.class, call_id = excluded.call_id,
        started_ms = excluded.started_ms, ended_ms = excluded.ended_ms, redacted = excluded.redacted,
        body = excluded.body`;

const ENTRY_VALUES = `e.step, e.kind, e.call, e.state, e.attempts, e.due_ms, e.digest, e.name, e.class, e.call_id,
                       e.started_ms, e.ended_ms, e.redacted, e.body`;

/**
 * The head changes of a batch; a null value leaves the column, a flag distinguishes null from absent where null has a meaning. The
 * keys are looked up first: the planner does not know the length of the arrays, and would compare every write with every open run.
 */
const WRITES = `
    WITH w AS MATERIALIZED (
      SELECT w.*, (SELECT run.key FROM %.run WHERE run.id = w.id) AS key FROM unnest(
        $1::int[], $2::text[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::text[], $8::int[], $9::int[],
        $10::int[], $11::bigint[], $12::bigint[], $13::bigint[], $14::boolean[], $15::text[], $16::boolean[],
        $17::text[], $18::boolean[], $19::int[]
      ) AS w (write, id, epoch, seq, now_ms, lease_ms, status, step, phase, messages, input_tokens, output_tokens,
              wake_ms, sets_wake, output, sets_output, error, sets_error, redactions)
    ), moved AS (
      UPDATE %.head SET
        seq = w.seq, status = coalesce(w.status, head.status), step = coalesce(w.step, head.step),
        phase = coalesce(w.phase, head.phase), messages = coalesce(w.messages, head.messages),
        input_tokens = coalesce(w.input_tokens, head.input_tokens),
        output_tokens = coalesce(w.output_tokens, head.output_tokens),
        wake_ms = coalesce(head.wake_ms, CASE WHEN w.sets_wake THEN w.wake_ms END),
        output = CASE WHEN w.sets_output THEN w.output ELSE head.output END,
        error = CASE WHEN w.sets_error THEN w.error ELSE head.error END,
        redactions = head.redactions + w.redactions, lease_until_ms = w.lease_ms,
        owner = CASE WHEN w.lease_ms = 0 THEN NULL ELSE head.owner END,
        deaths = CASE WHEN w.lease_ms = 0 OR w.step > head.step THEN 0 ELSE head.deaths END,
        updated_ms = w.now_ms
      FROM w
      WHERE head.key = w.key AND head.epoch = w.epoch AND head.seq = w.seq - 1 AND head.status = 'running'
      RETURNING head.key, w.write, w.seq, w.step
    ), entries AS (
      ${putEntries(`SELECT moved.key, moved.seq, ${ENTRY_VALUES} FROM moved JOIN ${unnestEntries(20)} USING (write)`)}
    ), streamed AS (
      DELETE FROM %.part USING moved WHERE part.key = moved.key AND part.step <= moved.step
    )`;

/** Sets the durability of the commit of this very statement. */
const SYNC = (n: number) => `set_config('synchronous_commit', $${n}::text, true)`;

const KEY = "(SELECT key FROM %.run WHERE id = $1)";

/** The runs that hold the steps of a run: itself and its ancestors. */
const CHAIN = `
      SELECT run.id, run.key, run.fork_of, coalesce(run.fork_step, -1) AS above, ${2 ** 31 - 1} AS upto
      FROM %.run WHERE run.id = $1
      -- Not ALL: in a damaged database, a run may be its own ancestor.
      UNION
      SELECT parent.id, parent.key, parent.fork_of, coalesce(parent.fork_step, -1), least(chain.above, chain.upto)
      FROM chain JOIN %.run AS parent ON parent.id = chain.fork_of`;

const readAll = (body: string) => `
      WITH RECURSIVE chain AS (${CHAIN})
      SELECT chain.id AS "runId", ${ENTRY}, ${body} AS body FROM chain
      JOIN %.entry ON entry.key = chain.key AND entry.step > chain.above AND entry.step <= chain.upto
      ORDER BY entry.step, entry.kind, entry.call`;
export const PG_JOURNAL_SQL = {
  /** Returns the ids that were free. */
  insert: `
    WITH n AS MATERIALIZED (
      SELECT * FROM unnest(
        $1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::bigint[], $9::text[],
        $10::text[], $11::int[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::int[],
        $18::text[], $19::bigint[], $20::int[], $21::int[], $22::int[], $23::int[], $24::int[], $25::int[], $26::bigint[],
        $27::bigint[], $28::bigint[], $29::bigint[], $30::bigint[], $31::text[], $32::text[]
      ) AS n (write, ${RUN_COLUMNS}, ${HEAD_COLUMNS})
    ), added AS (
      INSERT INTO %.run (${RUN_COLUMNS})
      SELECT ${RUN_COLUMNS} FROM n
      WHERE NOT EXISTS (SELECT 1 FROM %.pruned WHERE pruned.id = n.id) AND (n.fork_of IS NULL OR EXISTS (
        SELECT 1 FROM %.run AS above JOIN %.head USING (key)
        WHERE above.id = n.fork_of AND head.status <> 'stub' AND head.step >= n.fork_step))
      ON CONFLICT (id) DO NOTHING RETURNING key, id
    ), heads AS (
      INSERT INTO %.head (key, ${HEAD_COLUMNS}) SELECT added.key, ${HEAD_COLUMNS} FROM added JOIN n USING (id)
    ), entries AS (
      ${putEntries(`SELECT added.key, n.seq, ${ENTRY_VALUES} FROM added JOIN n USING (id) JOIN ${unnestEntries(33)} USING (write)`)}
    )
    SELECT id FROM added`,
  write: `${WRITES}
    SELECT write, ${SYNC(35)} FROM moved`,
  insertWaits: `
    INSERT INTO %.wait (key, id, kind, step, call, names, state, due_ms, digest, answer)
    SELECT ${KEY}, n.id, n.kind, n.step, n.call, n.names, n.state, n."dueMs", n.digest, n.answer
    FROM json_to_recordset($2::json) AS n (id text, kind text, step int, call bigint, names text[], state text,
                                           "dueMs" bigint, digest text, answer text)
    ON CONFLICT (key, id) DO NOTHING`,
  /** A batch that also changes waits and takes messages. */
  writeWaits: `${WRITES}, waits AS (
      INSERT INTO %.wait (key, id, kind, step, call, names, state, due_ms, digest, answer)
      SELECT moved.key, n.id, n.kind, n.step, n.call, n.names, n.state, n."dueMs", n.digest, n.answer
      FROM moved JOIN json_to_recordset($36::json) AS n (
        write int, id text, kind text, step int, call bigint, names text[], state text, "dueMs" bigint, digest text,
        answer text) USING (write)
      ON CONFLICT (key, id) DO UPDATE SET
        kind = excluded.kind, step = excluded.step, call = excluded.call, names = excluded.names,
        state = excluded.state, due_ms = excluded.due_ms, digest = excluded.digest, answer = excluded.answer
      WHERE wait.state = 'open' OR excluded.state <> 'open'
    ), took AS (
      UPDATE %.inbox SET taken = true FROM moved, unnest($37::int[], $38::text[]) AS t (write, id)
      WHERE t.write = moved.write AND inbox.key = moved.key AND inbox.id = t.id
    )
    SELECT write, ${SYNC(35)} FROM moved`,
  readHead: `SELECT ${HEAD} FROM %.run JOIN %.head USING (key) WHERE run.id = $1`,
  readHeads:
    "SELECT run.id, head.epoch, head.seq, head.status FROM %.run JOIN %.head USING (key) WHERE run.id = ANY ($1)",
  lockHead: `SELECT ${HEAD} FROM %.run JOIN %.head USING (key) WHERE run.id = $1 FOR UPDATE OF head`,
  list: `
    SELECT ${HEAD} FROM %.run JOIN %.head USING (key)
    WHERE head.status <> 'stub' AND ($1::text[] IS NULL OR head.status = ANY ($1)) AND ($2::text IS NULL OR agent_id = $2)
      AND ($3::text IS NULL OR parent_id = $3) AND ($4::text IS NULL OR thread = $4)
      AND ($7::text IS NULL OR run.queue = $7) AND starts_with(run.id, $8)
      AND ($5::bigint IS NULL OR (head.status = 'waiting' AND head.wake_ms <= $5))
    ORDER BY run.key DESC LIMIT $6`,
  readEntries: readAll("entry.body"),
  readStates: readAll("NULL"),
  readEntriesAfter: `
    SELECT $1::text AS "runId", ${ENTRY}, body FROM %.entry WHERE key = ${KEY} AND seq > $2 ORDER BY step, kind, call`,
  putEntry: putEntries(`SELECT $1::bigint, $2::int, ${ENTRY_VALUES} FROM ${unnestEntries(3)}`),
  countResponses: `
    WITH RECURSIVE chain AS (${CHAIN})
    SELECT count(DISTINCT entry.step) AS n FROM chain
    JOIN %.entry ON entry.key = chain.key AND entry.step > chain.above AND entry.step <= chain.upto
    WHERE entry.step > 0 AND entry.kind IN ('response', 'transcript')`,
  swapLease: `
    UPDATE %.head SET epoch = epoch + 1, owner = $3, lease_until_ms = $4, status = 'running', wake_ms = NULL,
      deaths = deaths + (CASE WHEN status = 'running' THEN 1 ELSE 0 END), updated_ms = $5
    WHERE key = ${KEY} AND epoch = $2 AND status IN ('running', 'queued', 'waiting', 'needs-human')`,
  /** One claim of a queue at a time, so that the limits hold. */
  lockQueue: "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
  candidates: `
    SELECT id, caller, model, priority, key AS position FROM (
      SELECT run.id, run.key, run.caller, run.model, run.priority,
             row_number() OVER (PARTITION BY run.caller, run.model ORDER BY run.priority DESC, run.key) AS n
      FROM %.head JOIN %.run USING (key)
      WHERE head.status IN ('queued', 'waiting') AND run.queue = $1 AND ($4::text IS NULL OR run.agent_id = $4)
        AND ($5::text IS NULL OR run.definition = $5)
        AND (head.status = 'queued' OR head.wake_ms <= $2)) AS ready
    WHERE n <= $3`,
  runningInQueue: `
    SELECT run.caller, run.model, head.owner FROM %.head JOIN %.run USING (key)
    WHERE head.status = 'running' AND run.queue = $1`,
  readOwned: `
    SELECT ${HEAD} FROM %.run JOIN %.head USING (key)
    WHERE head.status = 'running' AND run.queue = $1 AND head.owner = ANY ($2)`,
  /** A run that is being cancelled or answered at this moment is left for the next claim. */
  lockReady: `
    SELECT head.key, head.epoch FROM %.head JOIN %.run USING (key)
    WHERE run.id = $1 AND head.status IN ('queued', 'waiting') FOR UPDATE OF head SKIP LOCKED`,
  readQueues: "SELECT name, settings FROM %.queue ORDER BY name",
  writeQueue: `
    INSERT INTO %.queue (name, settings) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET settings = excluded.settings`,
  removeQueue: "DELETE FROM %.queue WHERE name = $1",
  lockBuckets: 'SELECT name, "left", at_ms AS "atMs" FROM %.bucket WHERE name = ANY ($1) FOR UPDATE',
  writeBucket: `
    INSERT INTO %.bucket (name, "left", at_ms) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET "left" = excluded."left", at_ms = excluded.at_ms`,
  readTick: 'SELECT tick_ms AS "tickMs" FROM %.tick WHERE schedule = $1',
  writeTick: `
    INSERT INTO %.tick (schedule, tick_ms) VALUES ($1, $2)
    ON CONFLICT (schedule) DO UPDATE SET tick_ms = excluded.tick_ms WHERE tick.tick_ms < excluded.tick_ms`,
  renewLease: `
    UPDATE %.head SET lease_until_ms = $3 WHERE key = ${KEY} AND epoch = $2 AND status = 'running'`,
  releaseLease: `
    UPDATE %.head SET lease_until_ms = 0, owner = NULL, deaths = 0 WHERE key = ${KEY} AND epoch = $2`,
  readWaits: `
    SELECT id, kind, step, call, names, state, due_ms AS "dueMs", digest, answer FROM %.wait
    WHERE key = ${KEY} ORDER BY step, call, id`,
  answerWait: "UPDATE %.wait SET state = 'answered', answer = $3 WHERE key = $1 AND id = $2",
  insertMessage: `
    INSERT INTO %.inbox (key, id, name, body, sent_ms) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key, id) DO NOTHING`,
  hasMessage: "SELECT 1 FROM %.inbox WHERE key = $1 AND id = $2",
  isAwaited: `
    SELECT 1 FROM %.wait WHERE key = $1 AND kind = 'signal' AND state = 'open' AND $2::text = ANY (names) LIMIT 1`,
  readInbox: `
    SELECT id, name, body, sent_ms AS "sentMs" FROM %.inbox WHERE key = ${KEY} AND NOT taken ORDER BY position`,
  /** The run and its ancestors, which wait with it. A running one is due as soon as it waits. */
  wake: `
    WITH RECURSIVE chain AS (
      SELECT key, parent_id FROM %.run WHERE key = $1
      UNION SELECT run.key, run.parent_id FROM chain JOIN %.run ON run.id = chain.parent_id)
    UPDATE %.head SET wake_ms = $2
    WHERE key IN (SELECT key FROM chain) AND status IN ('waiting', 'queued', 'running')`,
  cancel: "UPDATE %.head SET cancel_ms = coalesce(cancel_ms, $2) WHERE key = $1",
  notify: "SELECT pg_notify($1, $2)",
  putParts: `
    WITH owner AS (
      SELECT key FROM %.run JOIN %.head USING (key) WHERE run.id = $1 AND head.epoch = $2
    ), gone AS (
      DELETE FROM %.part USING owner
      WHERE part.key = owner.key AND (part.step <> $3 OR part.position >= $4::int + cardinality($5::text[])
        OR (part.epoch <> $2 AND part.position < $4::int))
    ), put AS (
      INSERT INTO %.part (key, step, position, epoch, body)
      SELECT owner.key, $3, $4::int + p.n - 1, $2, p.body FROM owner, unnest($5::text[]) WITH ORDINALITY AS p (body, n)
      ON CONFLICT (key, step, position) DO UPDATE SET epoch = excluded.epoch, body = excluded.body
    )
    SELECT ${SYNC(6)} FROM owner`,
  readParts: `SELECT epoch, body FROM %.part WHERE key = ${KEY} AND step = $2 AND position >= $3 ORDER BY position`,
  /** What followers compare: the last write and the last part. */
  readVersions: `
    SELECT run.id, head.seq, head.epoch, head.status, head.cancel_ms AS "cancelMs", (
      SELECT part.step || '.' || part.position FROM %.part WHERE part.key = run.key
      ORDER BY part.step DESC, part.position DESC LIMIT 1) AS part
    FROM %.run JOIN %.head USING (key) WHERE run.id = ANY ($1)`,
  settleHead: "UPDATE %.head SET epoch = epoch + 1, seq = $2, deaths = 0, updated_ms = $3 WHERE key = $1",
  reopen: `
    UPDATE %.head SET status = 'running', owner = NULL, lease_until_ms = 0
    WHERE key = $1 AND status = 'needs-human'
      AND NOT EXISTS (SELECT 1 FROM %.entry WHERE entry.key = $1 AND state = 'unknown')`,
  lockRuns: "LOCK TABLE %.run IN SHARE ROW EXCLUSIVE MODE",
  lineage: `
    SELECT run.id, head.status, head.epoch, head.step, head.updated_ms AS "updatedAtMs", run.fork_of AS "forkOf",
           run.fork_step AS "forkStep", run.format, run.agent_id AS "agentId", run.parent_id AS "parentRunId",
           (SELECT count(*) FROM %.entry WHERE entry.key = run.key AND entry.state = 'unknown') AS "unknownEffects"
    FROM %.run JOIN %.head USING (key) ORDER BY run.key`,
  removeEntriesAbove: `DELETE FROM %.entry WHERE key = ${KEY} AND step > $2`,
  makeStub: `
    UPDATE %.head SET status = 'stub', owner = NULL, lease_until_ms = 0, epoch = epoch + 1 WHERE key = ${KEY}`,
  removeWaits: `DELETE FROM %.wait WHERE key = ${KEY}`,
  removeInbox: `DELETE FROM %.inbox WHERE key = ${KEY}`,
  removeParts: `DELETE FROM %.part WHERE key = ${KEY}`,
  removeHead: `DELETE FROM %.head WHERE key = ${KEY}`,
  removeRun: "DELETE FROM %.run WHERE id = $1",
  remember: "INSERT INTO %.pruned (id) VALUES ($1) ON CONFLICT DO NOTHING",
  sizeBytes: `
    SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0) AS n FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = $1 AND relkind = 'r'`,
} as const;
