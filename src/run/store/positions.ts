// Reads the positions of a cell's runs for checkpoints and restores, which return files and conversation to the same
// step. Read-only and bounded; creates no files next to the database.
import { join } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import type { Processes } from "../../platform/process-identity.ts";
import { type DatabaseSync, databaseError, readDatabase } from "../../platform/sqlite.ts";
import { RUNS_DATABASE } from "../journal/sqlite-migrations.ts";
import { isOwnerDead, judgeLease } from "../log/lease.ts";
import type { Effect, RunStatus } from "../model/types.ts";
import { CELL_RUNS } from "./open.ts";

/** The position of one run. */
export interface RunPosition {
  /** Path of the database, relative to the cell. */
  readonly store: string;
  readonly runId: string;
  readonly agentId: string;
  readonly status: RunStatus;
  readonly step: number;
  readonly phase: number;
  /** Number of effects whose outcome is unknown. */
  readonly unknownEffects: number;
  readonly updatedAtMs: number;
}

/** At most this many positions are read; open runs come first. */
export const MAX_POSITIONS = 1000;

/** Effects of a run without a known outcome, in the tables that the database has: a checkpoint may hold an old one. */
const UNKNOWN = {
  entry: `(SELECT count(*) FROM entry WHERE entry.key = run.key AND entry.kind = 'effect'
           AND entry.state IN ('unknown', 'started') AND entry.class <> 'read')`,
  effect: `(SELECT count(*) FROM effect WHERE effect.key = run.key
            AND effect.state IN ('unknown', 'started') AND effect.class <> 'read')`,
} as const;

const positions = (unknown: string) => `
  SELECT run.id AS runId, run.agent_id AS agentId, head.status, head.step, head.phase, ${unknown} AS unknownEffects,
         head.updated_ms AS updatedAtMs
  FROM run JOIN head USING (key) WHERE head.status <> 'stub' AND substr(run.id, 1, length(:prefix)) = :prefix
  ORDER BY head.status IN ('running', 'needs-human', 'waiting', 'queued') DESC, head.updated_ms DESC
  LIMIT ${MAX_POSITIONS}`;

function readPositions(database: DatabaseSync, prefix: string): unknown[] {
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const counts = Object.entries(UNKNOWN).flatMap(([table, count]) =>
    tables.some(({ name }) => name === table) ? [count] : [],
  );
  return database.prepare(positions(counts.join(" + ") || "0")).all({ prefix });
}

/** The positions of a cell's runs, open ones first; empty when there is no store or it cannot be read. */
export function readRunPositions(cellRoot: string): RunPosition[] {
  try {
    return findRunPositions(cellRoot, "");
  } catch {
    return [];
  }
}

/** The positions of runs whose id starts with `prefix`. Throws when the store exists but cannot be read. */
export function findRunPositions(cellRoot: string, prefix: string): RunPosition[] {
  const path = join(cellRoot, CELL_RUNS);
  try {
    const rows = readDatabase(path, (database) => {
      const { application_id: id } = database.prepare("PRAGMA application_id").get() as {
        application_id: number;
      };
      if (id === RUNS_DATABASE.applicationId) return readPositions(database, prefix);
      throw new LazarusError(
        "RUN_STORE_FOREIGN",
        `${path} is not ${RUNS_DATABASE.what} but a database of another program`,
        {
          hint: `move it away: mv ${path} ${path}.other`,
        },
      );
    });
    return ((rows ?? []) as unknown as Omit<RunPosition, "store">[]).map((row) => ({
      store: CELL_RUNS,
      ...row,
    }));
  } catch (error) {
    throw error instanceof LazarusError ? error : databaseError(error, path, RUNS_DATABASE);
  }
}

const LEASES = `
  SELECT run.id AS runId, head.owner, head.lease_until_ms AS leaseUntilMs
  FROM run JOIN head USING (key) WHERE head.status = 'running' AND head.owner IS NOT NULL AND head.lease_until_ms > 0`;

/** A run of the cell whose owner may still be executing it; undefined when there is none or the store cannot be read. */
export function findHeldRun(
  cellRoot: string,
  processes: Processes,
  nowMs: number,
): { readonly runId: string; readonly owner: string } | undefined {
  try {
    const rows = readDatabase(join(cellRoot, CELL_RUNS), (database) => database.prepare(LEASES).all());
    const leases = (rows ?? []) as unknown as { runId: string; owner: string; leaseUntilMs: number }[];
    return leases.find((lease) => judgeLease(lease, nowMs, isOwnerDead(processes, lease.owner)) === "held");
  } catch {
    return undefined;
  }
}

/** Whether the outcome of an effect is unknown; the same rule as in the query. */
export function hasUnknownOutcome({ state, class: kind }: Pick<Effect, "state" | "class">): boolean {
  return (state === "unknown" || state === "started") && kind !== "read";
}

/** Describes how a restore moved the runs; empty when it did not. */
export function describeRunMove(before: readonly RunPosition[], after: readonly RunPosition[]): string {
  const old = new Map(before.map((run) => [run.runId, run]));
  const remaining = new Set(after.map((run) => run.runId));
  const sentences: string[] = [];
  for (const run of after) {
    const name = `run ${run.runId} (${run.agentId})`;
    const previous = old.get(run.runId);
    if (previous === undefined) sentences.push(`${name} was restored at step ${run.step}.`);
    else if (run.step < previous.step) {
      sentences.push(
        `${name} went back from step ${previous.step} to step ${run.step}: its effects after that step are not undone, ` +
          "and a resume replays those that it calls again with the same input.",
      );
    } else if (run.step > previous.step)
      sentences.push(`${name} went forward from step ${previous.step} to step ${run.step}.`);
    else if (run.status !== previous.status)
      sentences.push(`${name} is ${run.status} again at step ${run.step}.`);
  }
  for (const run of before) {
    if (!remaining.has(run.runId))
      sentences.push(`run ${run.runId} (${run.agentId}) is gone: it started after the checkpoint.`);
  }
  return sentences.join(" ");
}
