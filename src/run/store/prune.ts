// Removes runs from a backend as retention.ts planned it. Choice, plan, removal and proof are one transaction: a fork or
// a claim that comes in between either finds the run or is found by the plan.
import { LazarusError } from "../../platform/errors.ts";
import type { LineageRow, RunBackend } from "./backend.ts";
import { planPrune } from "./retention.ts";
import type { PruneReport } from "./store.ts";

/** Takes the chosen runs away, but for the messages that kept forks of them begin with. */
export async function pruneRuns(
  backend: RunBackend,
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

/** What a backend says when a run would not load any more; the throw undoes the prune. */
export function unloadable(runId: string, found: number, expected: number): LazarusError {
  return new LazarusError(
    "RUN_DAMAGED",
    `run ${runId} would load ${found} of its ${expected} messages; nothing was pruned`,
    { hint: `lazarus runs show ${runId}`, details: { runId, found, expected } },
  );
}

/** What is said of a run that someone claimed or changed while it was to go. */
export function changedHands(runId: string, what: string): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} changed hands meanwhile; nothing was ${what}`, {
    hint: "run the same command again",
  });
}
