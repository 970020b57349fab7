// What may be pruned, decided from plain data. A run that others were forked from cannot simply go: their transcripts
// begin with its messages. It becomes a stub that keeps just those, and goes when the last fork goes.
import { type LineageRow, type PrunePlan, ROW_FORMAT, type SeenRun } from "./backend.ts";

/** How long ended runs are kept. */
export interface RetentionPolicy {
  /** Runs that ended longer ago than this are taken away. */
  readonly olderThanMs: number;
  /** The newest so many ended runs stay whatever their age. */
  readonly keepLast?: number | undefined;
}

/** Which ended runs the policy lets go: never one that is open, has an unknown effect, or that a newer Lazarus wrote. */
export function choosePrunable(
  lineage: readonly LineageRow[],
  policy: RetentionPolicy,
  nowMs: number,
): string[] {
  const ended = lineage
    .filter(({ status, unknownEffects, format }) => {
      return !isOpen(status) && status !== "stub" && unknownEffects === 0 && format <= ROW_FORMAT;
    })
    .sort((a, b) => b.updatedMs - a.updatedMs);
  return ended
    .slice(policy.keepLast ?? 0)
    .filter(({ updatedMs }) => updatedMs <= nowMs - policy.olderThanMs)
    .map(({ id }) => id);
}

/** Turns a choice of runs into rows to remove and stubs to leave, so that every run that is kept still loads. */
export function planPrune(lineage: readonly LineageRow[], chosen: ReadonlySet<string>): PrunePlan {
  const rows = new Map(lineage.map((row) => [row.id, row]));
  const kept = lineage.filter((row) => row.status !== "stub" && !chosen.has(row.id));
  // How many messages of each run the kept ones need, walking up through the forks.
  const needed = new Map<string, number>();
  for (const run of kept) {
    let limit = Number.POSITIVE_INFINITY;
    const passed = new Set<string>();
    for (let row: LineageRow | undefined = run; row?.forkOf != null; row = rows.get(row.forkOf)) {
      // A damaged store may say that a run was forked from itself.
      if (passed.has(row.id)) break;
      passed.add(row.id);
      limit = Math.min(limit, row.forkSeq);
      if (limit > (needed.get(row.forkOf) ?? 0)) needed.set(row.forkOf, limit);
    }
  }
  const remove: SeenRun[] = [];
  const stub: PrunePlan["stub"][number][] = [];
  for (const row of lineage) {
    if (row.status !== "stub" && !chosen.has(row.id)) continue;
    const keepSeq = needed.get(row.id) ?? 0;
    const seen = { runId: row.id, epoch: row.epoch };
    if (keepSeq === 0) remove.push(seen);
    else stub.push({ ...seen, keepSeq });
  }
  // Forks are what could break; the rest shares nothing with what goes.
  const forks = remove.length + stub.length === 0 ? [] : kept.filter(({ forkOf }) => forkOf !== null);
  return { remove, stub, prove: forks.map(({ id, seq }) => ({ runId: id, seq })) };
}

function isOpen(status: LineageRow["status"]): boolean {
  return status === "running" || status === "needs-human";
}
