// Removes runs from a backend as retention.ts planned it, and has it prove in the same transaction that every fork that
// is kept still loads.
import type { RunBackend } from "./backend.ts";
import { planPrune } from "./retention.ts";
import type { PruneReport } from "./store.ts";

/** Takes the chosen runs away, but for the messages that kept forks of them begin with. */
export async function pruneRuns(backend: RunBackend, chosen: ReadonlySet<string>): Promise<PruneReport> {
  const lineage = await backend.listLineage();
  const plan = planPrune(lineage, chosen);
  // Forks of what goes are what could break; the rest shares nothing with it.
  const touched = new Set([...plan.remove, ...plan.stub.map(({ runId }) => runId)]);
  const prove: { runId: string; seq: number }[] = [];
  for (const { id, forkOf, status } of lineage) {
    if (forkOf === null || status === "stub" || chosen.has(id) || touched.size === 0) continue;
    const row = await backend.readRun(id);
    if (row !== undefined) prove.push({ runId: id, seq: row.seq });
  }
  await backend.prune(plan, prove);
  return {
    removed: [...chosen],
    stubs: plan.stub.map(({ runId }) => runId),
    freedMessages: plan.remove.length + plan.stub.length > 0,
  };
}
