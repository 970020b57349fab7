// Moves the rows of the first format (`message`, `effect`, `phase`) into entries, some runs at a time, each batch in one
// transaction. See sqlite-old-rows.ts: texts are moved unchanged, and the epoch is raised with the format.
import type { PoolClient } from "pg";
import { crashPoint } from "../../platform/crash-point.ts";
import type { PostgresPool } from "../../platform/postgres/pool.ts";

/** Runs moved in one transaction. */
const BATCH = 50;

const SQL = {
  hasOld: "SELECT to_regclass('%.message') IS NOT NULL AS old",
  // Two processes take turns; the second one finds the next runs.
  lock: `
    SELECT array_agg(key) AS keys FROM (
      SELECT key FROM %.run WHERE format = 1 ORDER BY key LIMIT ${BATCH} FOR UPDATE) AS old`,
  copyMessages: `
    INSERT INTO %.entry (key, step, kind, call, seq, state, attempts, name, redacted, body)
    SELECT message.key, message.step, 'transcript', message.seq, head.seq, 'done', 1, message.phase::text, false, message.body
    FROM %.message JOIN %.head USING (key) WHERE message.key = ANY ($1)
    ON CONFLICT DO NOTHING`,
  copyEffects: `
    INSERT INTO %.entry (key, step, kind, call, seq, state, attempts, name, class, call_id, started_ms, ended_ms, redacted, body)
    SELECT effect.key, effect.step, 'effect', effect.call, head.seq, effect.state, effect.attempts, effect.tool, effect.class,
           effect.call_id, effect.started_ms, effect.ended_ms, effect.input_redacted,
           '{"v1":' || json_build_object('output', effect.output, 'error', effect.error) || '}'
    FROM %.effect JOIN %.head USING (key) WHERE effect.key = ANY ($1)
    ON CONFLICT DO NOTHING`,
  copyPhases: `
    INSERT INTO %.entry (key, step, kind, call, seq, state, attempts, name, redacted, body)
    SELECT phase.key, greatest(coalesce(run.fork_step, -1) + 1, coalesce((SELECT max(step) FROM %.message
        WHERE message.key = phase.key AND message.phase = phase.position), 0)),
      'phase', phase.position, head.seq, 'done', 1, 'v1', false, phase.body
    FROM %.phase JOIN %.head USING (key) JOIN %.run USING (key) WHERE phase.key = ANY ($1)
    ON CONFLICT DO NOTHING`,
  removeMessages: "DELETE FROM %.message WHERE key = ANY ($1)",
  removeEffects: "DELETE FROM %.effect WHERE key = ANY ($1)",
  removePhases: "DELETE FROM %.phase WHERE key = ANY ($1)",
  fence: "UPDATE %.head SET epoch = epoch + 1 WHERE key = ANY ($1)",
  finish: "UPDATE %.run SET format = 2 WHERE key = ANY ($1)",
  // A process of an older version may still add runs.
  lockRuns: "LOCK TABLE %.run IN SHARE ROW EXCLUSIVE MODE",
  hasMore: "SELECT EXISTS (SELECT 1 FROM %.run WHERE format = 1) AS more",
  drop: "DROP TABLE IF EXISTS %.message, %.effect, %.phase; DROP INDEX IF EXISTS %.run_old",
} as const;

const MOVE = [
  ...["copyMessages", "copyEffects", "copyPhases"],
  ...["removeMessages", "removeEffects", "removePhases", "fence", "finish"],
] as readonly (keyof typeof SQL)[];

/** Moves everything, then drops the old tables. */
export async function moveOldRows(pool: PostgresPool): Promise<void> {
  for (let isOver = false; !isOver; ) {
    isOver = await pool.inTransaction((client) => moveBatch(client, pool.schema));
    crashPoint("engine.migrate.postgres");
  }
}

/** Moves one batch; true when nothing is left. */
async function moveBatch(client: PoolClient, schema: string): Promise<boolean> {
  const run = (name: keyof typeof SQL, values: unknown[] = []) =>
    client.query(SQL[name].replaceAll("%.", `${schema}.`), values);
  if (!(await run("hasOld")).rows[0].old) return true;
  const keys: number[] | null = (await run("lock")).rows[0].keys;
  if (keys === null) {
    // Rows that another process has just moved may have hidden others.
    await run("lockRuns");
    if ((await run("hasMore")).rows[0].more) return false;
    await run("drop");
    return true;
  }
  for (const name of MOVE) await run(name, [keys]);
  return false;
}
