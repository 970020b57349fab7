// Removes runs as planned by retention.ts. Choice, plan, removal and check are one transaction of the backend, so that a
// concurrent fork or claim either finds the run or is seen by the plan.
import { LazarusError } from "../../platform/errors.ts";
import type { LineageRow } from "./backend.ts";
import { findRun, refuseOwned, type StoreContext, timeOf } from "./context.ts";
import { choosePrunable, planPrune, type RetentionPolicy } from "./retention.ts";
import { checkFormat } from "./row-codec.ts";
import type { PruneReport } from "./store.ts";

/** Removes ended runs by policy. */
export function pruneRuns(context: StoreContext, policy: RetentionPolicy): Promise<PruneReport> {
  return removeRuns(context, (lineage) => choosePrunable(lineage, policy, timeOf(context)));
}

/** Removes one run; false when there is none. */
export async function deleteRun(context: StoreContext, runId: string): Promise<boolean> {
  const row = await findRun(context, runId);
  if (row === undefined) return false;
  checkFormat(row);
  refuseOwned(context, row);
  const { removed } = await removeRuns(context, (lineage) => {
    const current = lineage.find(({ id, status }) => id === runId && status !== "stub");
    if (current !== undefined && current.epoch !== row.epoch) throw changedMeanwhile(runId, "deleted");
    return current === undefined ? [] : [runId];
  });
  return removed.length > 0;
}

/** Removes the chosen runs, except for the messages that kept forks of them share. */
async function removeRuns(
  { backend }: StoreContext,
  choose: (lineage: readonly LineageRow[]) => readonly string[],
): Promise<PruneReport> {
  let removed: readonly string[] = [];
  const plan = await backend.prune((lineage) => {
    removed = choose(lineage);
    return planPrune(lineage, new Set(removed));
  });
  return {
    removed,
    stubs: plan.stub.map(({ runId }) => runId),
    freedMessages: plan.remove.length + plan.stub.length > 0,
  };
}

/** The error of a backend when a kept run would no longer load. Throwing it rolls the prune back. */
export function unloadable(runId: string, found: number, expected: number): LazarusError {
  return new LazarusError(
    "RUN_DAMAGED",
    `run ${runId} would load ${found} of its ${expected} messages; nothing was pruned`,
    { hint: `lazarus runs show ${runId}`, details: { runId, found, expected } },
  );
}

/** The error for a run that was claimed or changed during the operation. */
export function changedMeanwhile(runId: string, action: string): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} changed meanwhile; nothing was ${action}`, {
    hint: "run the same command again",
  });
}
