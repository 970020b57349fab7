// Where the runs of a cell stand, for whoever checkpoints or restores the cell (promise 7 of runs: files and
// conversation go back to the same step). Only reads, is bounded, and makes nothing beside the database.
import { join } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import { databaseError, readDatabase } from "../../platform/sqlite.ts";
import type { Effect, RunStatus } from "../model/types.ts";
import { CELL_RUNS } from "./open.ts";
import { RUNS_DATABASE } from "./sqlite-schema.ts";

/** Where one run of a cell stands. */
export interface RunPosition {
  /** The database, below the cell's root. */
  readonly store: string;
  readonly runId: string;
  readonly agentId: string;
  readonly status: RunStatus;
  readonly step: number;
  readonly phase: number;
  /** Effects of which nobody knows whether they happened. */
  readonly unknownEffects: number;
  readonly updatedAtMs: number;
}

/** How many positions are read at most; open runs come first. */
export const MOST_POSITIONS = 1000;

const POSITIONS = `
  SELECT run.id AS runId, run.agent_id AS agentId, head.status, head.step, head.phase,
         (SELECT count(*) FROM effect
          WHERE effect.key = run.key AND state IN ('unknown', 'started') AND class <> 'read') AS unknownEffects,
         head.updated_ms AS updatedAtMs
  FROM run JOIN head USING (key) WHERE head.status <> 'stub' AND substr(run.id, 1, length(:start)) = :start
  ORDER BY head.status IN ('running', 'needs-human') DESC, head.updated_ms DESC LIMIT ${MOST_POSITIONS}`;

/** The positions of a cell's runs, open ones first; none when there is no store or it cannot be read. */
export function readRunPositions(cellRoot: string): RunPosition[] {
  try {
    return findRunPositions(cellRoot, "");
  } catch {
    return [];
  }
}

/** Those of the runs whose id begins with `start`. Throws in plain words when there is a store that cannot be read. */
export function findRunPositions(cellRoot: string, start: string): RunPosition[] {
  const path = join(cellRoot, CELL_RUNS);
  try {
    const rows = readDatabase(path, (database) => {
      const { application_id: id } = database.prepare("PRAGMA application_id").get() as {
        application_id: number;
      };
      if (id === RUNS_DATABASE.applicationId) return database.prepare(POSITIONS).all({ start });
      throw new LazarusError(
        "RUN_STORE_FOREIGN",
        `${path} is a database of another program, not ${RUNS_DATABASE.what}`,
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

/** Whether nobody knows what became of an effect: the same rule as in the query. */
export function isUnsettled({ state, class: kind }: Pick<Effect, "state" | "class">): boolean {
  return (state === "unknown" || state === "started") && kind !== "read";
}

/** What a restore did to the runs, in words; empty when they stand where they stood. */
export function describeRunMove(before: readonly RunPosition[], after: readonly RunPosition[]): string {
  const was = new Map(before.map((run) => [run.runId, run]));
  const is = new Map(after.map((run) => [run.runId, run]));
  const sentences: string[] = [];
  for (const run of after) {
    const name = `run ${run.runId} (${run.agentId})`;
    const old = was.get(run.runId);
    if (old === undefined) sentences.push(`${name} is back, at step ${run.step}.`);
    else if (run.step < old.step) {
      sentences.push(
        `${name} went back from step ${old.step} to step ${run.step}: what it did to the outside world after that step ` +
          "stays done, and a resume may do it again with the same effect ids.",
      );
    } else if (run.step > old.step) sentences.push(`${name} went from step ${old.step} to step ${run.step}.`);
    else if (run.status !== old.status) sentences.push(`${name} is ${run.status} again at step ${run.step}.`);
  }
  for (const run of before) {
    if (!is.has(run.runId)) sentences.push(`run ${run.runId} (${run.agentId}) is gone: it began later.`);
  }
  return sentences.join(" ");
}
