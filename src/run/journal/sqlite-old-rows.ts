// Moves the rows of the first format (`message`, `effect`, `phase`) into entries, in small transactions with pauses between them,
// so that a large database does not stop the event loop. Texts are moved unchanged: no key is needed, and what they mean is
// decided when they are read (log/old-transcript.ts). A run counts as moved when its format is 2; until then only this file
// reads it, so a process that dies in the middle, or two that work concurrently, lose nothing. The epoch is raised with the format:
// a process of an older version that still executes the run is refused from then on (INV-4).
import { crashPoint } from "../../platform/crash-point.ts";
import type { DatabaseSync, GroupCommit } from "../../platform/sqlite.ts";

/** A message's row id was run key × 2²² + position. */
const MESSAGES_PER_RUN = 2 ** 22;
/** Rows moved in one transaction. */
const BATCH = 200;

const SQL = {
  next: `
    SELECT run.key, head.seq, coalesce(run.fork_step, -1) AS forkStep FROM run JOIN head USING (key)
    WHERE run.format = 1 ORDER BY run.key LIMIT 1`,
  copyMessages: `
    INSERT INTO entry (key, step, kind, call, seq, state, attempts, name, redacted, body)
    SELECT :key, step, 'transcript', id - :first, :seq, 'done', 1, CAST(phase AS TEXT), 0, body FROM message
    WHERE id >= :first AND id < :end ORDER BY id LIMIT ${BATCH}
    ON CONFLICT (key, step, kind, call) DO NOTHING`,
  removeMessages: `
    DELETE FROM message WHERE id IN (SELECT id FROM message WHERE id >= :first AND id < :end ORDER BY id LIMIT ${BATCH})`,
  copyEffects: `
    INSERT INTO entry (key, step, kind, call, seq, state, attempts, name, class, call_id, started_ms, ended_ms, redacted, body)
    SELECT key, step, 'effect', call, :seq, state, attempts, tool, class, call_id, started_ms, ended_ms, input_redacted,
           json_object('v1', json_object('output', output, 'error', error))
    FROM effect WHERE key = :key
    ON CONFLICT (key, step, kind, call) DO NOTHING`,
  // A fork reads only its own steps; the phases that it shares were copied to it.
  copyPhases: `
    INSERT INTO entry (key, step, kind, call, seq, state, attempts, name, redacted, body)
    SELECT phase.key, max(:above, coalesce((SELECT max(step) FROM entry
        WHERE entry.key = phase.key AND entry.kind = 'transcript' AND entry.name = CAST(phase.position AS TEXT)), 0)),
      'phase', phase.position, :seq, 'done', 1, 'v1', 0, phase.body
    FROM phase WHERE phase.key = :key
    ON CONFLICT (key, step, kind, call) DO NOTHING`,
  removeEffects: "DELETE FROM effect WHERE key = :key",
  removePhases: "DELETE FROM phase WHERE key = :key",
  fence: "UPDATE head SET epoch = epoch + 1 WHERE key = :key",
  finish: "UPDATE run SET format = 2 WHERE key = :key",
} as const;

interface OldRun {
  readonly key: number;
  readonly seq: number;
  readonly forkStep: number;
}

/** Moves the rows before anything else is done with the database; other calls wait until then. */
export interface OldRowsMove {
  readonly isNeeded: boolean;
  /** One move at a time; one that failed is tried again. */
  finish(): Promise<void>;
}

/** Starts at the first call of `finish`. */
export function createOldRowsMove(database: DatabaseSync, group: GroupCommit): OldRowsMove {
  let isNeeded = hasOldRows(database);
  let moving: Promise<void> | undefined;
  return {
    get isNeeded() {
      return isNeeded;
    },
    finish() {
      moving ??= moveOldRows(database, group)
        .then(() => {
          isNeeded = false;
        })
        .finally(() => {
          moving = undefined;
        });
      return moving;
    },
  };
}

/** Whether a database still has the tables of the first format. */
function hasOldRows(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'message'").get() !== undefined;
}

/** Moves everything, then drops the old tables. */
async function moveOldRows(database: DatabaseSync, group: GroupCommit): Promise<void> {
  for (let isOver = false; !isOver; ) {
    // Not synced: what a power cut loses is moved again.
    isOver = await group.run(() => moveBatch(database), "lazy");
    crashPoint("engine.migrate.sqlite");
  }
}

/** Moves one batch; true when nothing is left. */
function moveBatch(database: DatabaseSync): boolean {
  if (!hasOldRows(database)) return true;
  const run = database.prepare(SQL.next).get() as unknown as OldRun | undefined;
  if (run === undefined) {
    for (const table of ["message", "effect", "phase"]) database.exec(`DROP TABLE ${table}`);
    database.exec("DROP INDEX run_old");
    return true;
  }
  const { key, seq, forkStep } = run;
  const range = { first: key * MESSAGES_PER_RUN, end: (key + 1) * MESSAGES_PER_RUN };
  database.prepare(SQL.copyMessages).run({ key, seq, ...range });
  if (Number(database.prepare(SQL.removeMessages).run(range).changes) === BATCH) return false;
  database.prepare(SQL.copyEffects).run({ key, seq });
  database.prepare(SQL.copyPhases).run({ key, seq, above: forkStep + 1 });
  for (const name of ["removeEffects", "removePhases", "fence", "finish"] as const)
    database.prepare(SQL[name]).run({ key });
  return false;
}
