// The SQLite tables of the journal and all statements on them. Columns that change at every write are in `head`, those that
// never change in `run`. Entries are in a table with row ids, because SQLite keeps longer rows together there than in an
// index; new ones are appended at its end.

/** Migration 2 → 3 of the runs database. Never edited. */
export const JOURNAL_TABLES = `
  ALTER TABLE run ADD COLUMN queue TEXT;
  ALTER TABLE run ADD COLUMN caller TEXT;
  ALTER TABLE run ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE run ADD COLUMN model TEXT;
  ALTER TABLE run ADD COLUMN thread TEXT;
  ALTER TABLE run ADD COLUMN definition TEXT;

  ALTER TABLE head ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE head ADD COLUMN wake_ms INTEGER;
  ALTER TABLE head ADD COLUMN cancel_ms INTEGER;
  UPDATE head SET messages = seq;
  DROP INDEX head_open;
  CREATE INDEX head_open ON head (status) WHERE status IN ('running', 'needs-human', 'queued', 'waiting');

  CREATE TABLE entry (
    id         INTEGER PRIMARY KEY,
    key        INTEGER NOT NULL REFERENCES run (key),
    step       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    call       INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    state      TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    due_ms     INTEGER,
    digest     TEXT,
    name       TEXT,
    class      TEXT,
    call_id    TEXT,
    started_ms INTEGER,
    ended_ms   INTEGER,
    redacted   INTEGER NOT NULL,
    body       TEXT
  ) STRICT;
  CREATE UNIQUE INDEX entry_by_place ON entry (key, step, kind, call);
  CREATE INDEX entry_by_seq ON entry (key, seq);
  CREATE INDEX entry_unknown ON entry (key) WHERE state = 'unknown';

  CREATE TABLE wait (
    key    INTEGER NOT NULL REFERENCES run (key),
    id     TEXT NOT NULL,
    kind   TEXT NOT NULL,
    step   INTEGER NOT NULL,
    call   INTEGER NOT NULL,
    names  TEXT NOT NULL,
    state  TEXT NOT NULL,
    due_ms INTEGER,
    digest TEXT,
    answer TEXT,
    PRIMARY KEY (key, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE inbox (
    key      INTEGER NOT NULL REFERENCES run (key),
    id       TEXT NOT NULL,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    body     TEXT NOT NULL,
    sent_ms  INTEGER NOT NULL,
    taken    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (key, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE part (
    key      INTEGER NOT NULL REFERENCES run (key),
    step     INTEGER NOT NULL,
    position INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (key, step, position)
  ) STRICT, WITHOUT ROWID;

  -- What is left of the rate limits of queues, and the last tick of each schedule that was handled.
  CREATE TABLE mark (name TEXT PRIMARY KEY, value REAL NOT NULL, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  `;

/** Migration 3 → 4: the limits of queues, as JSON. Never edited. */
export const QUEUE_TABLE =
  "CREATE TABLE queue (name TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT, WITHOUT ROWID";

const HEAD = `
  run.key, run.id, run.agent_id AS agentId, run.parent_id AS parentRunId, run.fork_of AS forkOf,
  run.fork_step AS forkStep, run.format, run.created_ms AS createdAtMs, run.queue, run.caller, run.priority, run.model, run.thread,
  run.definition, run.info, head.status, head.epoch, head.owner, head.lease_until_ms AS leaseUntilMs, head.deaths,
  head.seq, head.step, head.phase, head.messages, head.redactions, head.input_tokens AS inputTokens,
  head.output_tokens AS outputTokens, head.wake_ms AS wakeMs, head.cancel_ms AS cancelMs,
  head.updated_ms AS updatedAtMs, head.output, head.error`;

const KEY = "(SELECT key FROM run WHERE id = :runId)";

const ENTRY = `
  entry.seq, entry.step, entry.kind, entry.call, entry.state, entry.attempts, entry.due_ms AS dueMs, entry.digest,
  entry.name, entry.class, entry.call_id AS callId, entry.started_ms AS startedMs, entry.ended_ms AS endedMs,
  entry.redacted`;

const moveHead = (status: string) => `
  UPDATE head SET ${status} seq = :seq, step = :step, phase = :phase, messages = :messages, redactions = :redactions,
    input_tokens = :inputTokens, output_tokens = :outputTokens, wake_ms = :wakeMs, owner = :owner, deaths = :deaths,
    lease_until_ms = :leaseUntilMs, updated_ms = :updatedAtMs, output = :output, error = :error
  WHERE key = :key`;

export const JOURNAL_SQL = {
  insertRun: `
    INSERT INTO run (id, agent_id, parent_id, fork_of, fork_step, format, created_ms, queue, caller, priority, model,
                     thread, definition, info)
    SELECT :id, :agentId, :parentRunId, :forkOf, :forkStep, :format, :createdAtMs, :queue, :caller, :priority, :model,
           :thread, :definition, :info
    WHERE :forkOf IS NULL OR EXISTS (
      SELECT 1 FROM run AS above JOIN head USING (key)
      WHERE above.id = :forkOf AND head.status <> 'stub' AND head.step >= :forkStep)
    ON CONFLICT (id) DO NOTHING RETURNING key`,
  insertHead: `
    INSERT INTO head (key, status, epoch, owner, lease_until_ms, deaths, seq, step, phase, messages, redactions,
                      input_tokens, output_tokens, wake_ms, cancel_ms, updated_ms, output, error)
    VALUES (:key, :status, :epoch, :owner, :leaseUntilMs, :deaths, :seq, :step, :phase, :messages, :redactions,
            :inputTokens, :outputTokens, :wakeMs, :cancelMs, :updatedAtMs, :output, :error)`,
  /** A run that continues: setting the status would rewrite a page of its index. */
  moveHead: moveHead(""),
  endHead: moveHead("status = :status,"),
  readHead: `SELECT ${HEAD} FROM run JOIN head USING (key) WHERE run.id = ?`,
  list: `
    SELECT ${HEAD} FROM run JOIN head USING (key)
    WHERE head.status <> 'stub' AND (:statuses IS NULL OR head.status IN (SELECT value FROM json_each(:statuses)))
      AND (:agentId IS NULL OR run.agent_id = :agentId) AND (:parentRunId IS NULL OR run.parent_id = :parentRunId)
      AND (:thread IS NULL OR run.thread = :thread) AND (:queue IS NULL OR run.queue = :queue)
      AND substr(run.id, 1, length(:idPrefix)) = :idPrefix
      AND (:dueMs IS NULL OR (head.status = 'waiting' AND head.wake_ms <= :dueMs))
    ORDER BY run.key DESC LIMIT :limit`,
  putEntry: `
    INSERT INTO entry (key, step, kind, call, seq, state, attempts, due_ms, digest, name, class, call_id, started_ms,
                       ended_ms, redacted, body)
    VALUES (:key, :step, :kind, :call, :seq, :state, :attempts, :dueMs, :digest, :name, :class, :callId, :startedMs,
            :endedMs, :redacted, :body)
    ON CONFLICT (key, step, kind, call) DO UPDATE SET
      seq = excluded.seq, state = excluded.state, attempts = excluded.attempts, due_ms = excluded.due_ms,
      digest = excluded.digest, name = excluded.name, class = excluded.class, call_id = excluded.call_id,
      started_ms = excluded.started_ms, ended_ms = excluded.ended_ms, redacted = excluded.redacted, body = excluded.body`,
  readEntries: `
    SELECT ${ENTRY}, body FROM entry WHERE key = :key AND step > :above AND step <= :upTo ORDER BY step, kind, call`,
  readStates: `
    SELECT ${ENTRY}, NULL AS body FROM entry
    WHERE key = :key AND step > :above AND step <= :upTo ORDER BY step, kind, call`,
  readEntriesAfter: `SELECT ${ENTRY}, body FROM entry WHERE key = :key AND seq > :seq ORDER BY step, kind, call`,
  countResponses: `
    SELECT count(DISTINCT step) AS n FROM entry
    WHERE key = :key AND step > :above AND step <= :upTo AND step > 0 AND kind IN ('response', 'transcript')`,
  /** An answer that came first stays. */
  putWait: `
    INSERT INTO wait (key, id, kind, step, call, names, state, due_ms, digest, answer)
    VALUES (:key, :id, :kind, :step, :call, :names, :state, :dueMs, :digest, :answer)
    ON CONFLICT (key, id) DO UPDATE SET
      kind = excluded.kind, step = excluded.step, call = excluded.call, names = excluded.names, state = excluded.state,
      due_ms = excluded.due_ms, digest = excluded.digest, answer = excluded.answer
    WHERE wait.state = 'open' OR excluded.state <> 'open'`,
  readWaits: `
    SELECT id, kind, step, call, names, state, due_ms AS dueMs, digest, answer FROM wait
    WHERE key = ${KEY} ORDER BY step, call, id`,
  answerWait: "UPDATE wait SET state = 'answered', answer = :answer WHERE key = :key AND id = :id",
  insertMessage: `
    INSERT INTO inbox (key, id, position, name, body, sent_ms)
    SELECT :key, :id, coalesce(max(position), 0) + 1, :name, :body, :sentMs FROM inbox WHERE key = :key
    ON CONFLICT (key, id) DO NOTHING`,
  findMessage: `SELECT 1 FROM inbox WHERE key = ${KEY} AND id = :id`,
  readInbox: `SELECT id, name, body, sent_ms AS sentMs FROM inbox WHERE key = ${KEY} AND taken = 0 ORDER BY position`,
  takeMessage: "UPDATE inbox SET taken = 1 WHERE key = :key AND id = :id",
  /** The run and its ancestors, which wait with it. A running one is due as soon as it waits. */
  wake: `
    WITH RECURSIVE chain AS (
      SELECT key, parent_id FROM run WHERE key = :key
      UNION SELECT run.key, run.parent_id FROM chain JOIN run ON run.id = chain.parent_id)
    UPDATE head SET wake_ms = :nowMs
    WHERE key IN (SELECT key FROM chain) AND status IN ('waiting', 'queued', 'running')`,
  cancel: "UPDATE head SET cancel_ms = coalesce(cancel_ms, :nowMs) WHERE key = :key",
  putPart: `
    INSERT INTO part (key, step, position, epoch, body) VALUES (:key, :step, :position, :epoch, :body)
    ON CONFLICT (key, step, position) DO UPDATE SET epoch = excluded.epoch, body = excluded.body`,
  removeParts:
    "DELETE FROM part WHERE key = :key AND (step <> :step OR position >= :from OR epoch <> :epoch)",
  removeStepParts: "DELETE FROM part WHERE key = :key AND step = :step",
  readParts: `
    SELECT epoch, body FROM part WHERE key = ${KEY} AND step = :step AND position >= :from ORDER BY position`,
  swapLease: `
    UPDATE head SET epoch = epoch + 1, owner = :owner, lease_until_ms = :leaseUntilMs, status = 'running', wake_ms = NULL,
      deaths = deaths + (status = 'running'), updated_ms = :nowMs
    WHERE key = :key`,
  /** The first runs of each caller that are ready. */
  candidates: `
    SELECT id, caller, model, priority, key AS position FROM (
      SELECT run.id, run.key, run.caller, run.model, run.priority,
             row_number() OVER (PARTITION BY run.caller, run.model ORDER BY run.priority DESC, run.key) AS n
      FROM head JOIN run USING (key)
      WHERE head.status IN ('queued', 'waiting') AND run.queue = :queue
        AND (:agentId IS NULL OR run.agent_id = :agentId) AND (:definition IS NULL OR run.definition = :definition)
        AND (head.status = 'queued' OR head.wake_ms <= :nowMs))
    WHERE n <= :count`,
  runningInQueue: `
    SELECT run.caller, run.model, head.owner FROM head JOIN run USING (key)
    WHERE head.status = 'running' AND run.queue = :queue`,
  readQueues: "SELECT name, settings FROM queue ORDER BY name",
  writeQueue: `
    INSERT INTO queue (name, settings) VALUES (:queue, :settings)
    ON CONFLICT (name) DO UPDATE SET settings = excluded.settings`,
  removeQueue: "DELETE FROM queue WHERE name = ?",
  readBucket: "SELECT value AS left, at_ms AS atMs FROM mark WHERE name = ?",
  writeBucket: `
    INSERT INTO mark (name, value, at_ms) VALUES (:name, :left, :atMs)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, at_ms = excluded.at_ms`,
  readTick: "SELECT at_ms AS tickMs FROM mark WHERE name = 'schedule ' || ?",
  writeTick: `
    INSERT INTO mark (name, value, at_ms) VALUES ('schedule ' || :schedule, 0, :tickMs)
    ON CONFLICT (name) DO UPDATE SET at_ms = excluded.at_ms WHERE mark.at_ms < excluded.at_ms`,
  renewLease: `
    UPDATE head SET lease_until_ms = :leaseUntilMs WHERE key = ${KEY} AND epoch = :epoch AND status = 'running'`,
  releaseLease: `
    UPDATE head SET lease_until_ms = 0, owner = NULL, deaths = 0 WHERE key = ${KEY} AND epoch = :epoch`,
  settleHead: `
    UPDATE head SET epoch = epoch + 1, seq = :seq, deaths = 0, updated_ms = :nowMs WHERE key = :key`,
  reopen: `
    UPDATE head SET status = 'running', owner = NULL, lease_until_ms = 0
    WHERE key = :key AND status = 'needs-human'
      AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.key = :key AND state = 'unknown')`,
  lineage: `
    SELECT run.id, head.status, head.epoch, head.step, head.updated_ms AS updatedAtMs, run.fork_of AS forkOf,
           run.fork_step AS forkStep, run.format, run.agent_id AS agentId, run.parent_id AS parentRunId,
           (SELECT count(*) FROM entry WHERE entry.key = run.key AND entry.state = 'unknown') AS unknownEffects
    FROM run JOIN head USING (key) ORDER BY run.key`,
  removeEntriesAbove: "DELETE FROM entry WHERE key = :key AND step > :keepStep",
  makeStub:
    "UPDATE head SET status = 'stub', owner = NULL, lease_until_ms = 0, epoch = epoch + 1 WHERE key = ?",
  removeEntries: "DELETE FROM entry WHERE key = ?",
  removeWaits: "DELETE FROM wait WHERE key = ?",
  removeInbox: "DELETE FROM inbox WHERE key = ?",
  removeAllParts: "DELETE FROM part WHERE key = ?",
  removeHead: "DELETE FROM head WHERE key = ?",
  /** Its row stays: an id is never used for two runs. */
  forgetRun: "UPDATE run SET info = '', parent_id = NULL, fork_of = NULL, thread = NULL WHERE key = ?",
} as const;
