// Decides what to prune, as pure functions. A run that has forks cannot be removed entirely, because their transcripts
// start with its messages. It becomes a stub that keeps only those, and is removed with its last fork.
import { type LineageRow, type PrunePlan, ROW_FORMAT, type SeenRun } from "./backend.ts";

/** How long ended runs are kept. */
export interface RetentionPolicy {
  /** Runs that ended longer ago than this are removed. */
  readonly olderThanMs: number;
  /** This many of the newest ended runs are kept regardless of age. */
  readonly keepLast?: number | undefined;
}

/** The ended runs that the policy removes. Never an open run, one with an unknown effect, or one of a newer format. */
export function choosePrunable(
  lineage: readonly LineageRow[],
  policy: RetentionPolicy,
  nowMs: number,
): string[] {
  const ended = lineage
    .filter(({ status, unknownEffects, format }) => {
      return !isOpen(status) && status !== "stub" && unknownEffects === 0 && format <= ROW_FORMAT;
    })
    .sort((a, b) => b.updatedAtMs - a.updatedAtMs);
  return ended
    .slice(policy.keepLast ?? 0)
    .filter(({ updatedAtMs }) => updatedAtMs <= nowMs - policy.olderThanMs)
    .map(({ id }) => id);
}

/** Decides which of the chosen runs to remove and which to reduce to stubs, so that every kept run still loads. */
export function planPrune(lineage: readonly LineageRow[], chosen: ReadonlySet<string>): PrunePlan {
  const rows = new Map(lineage.map((row) => [row.id, row]));
  const kept = lineage.filter((row) => row.status !== "stub" && !chosen.has(row.id));
  // How many messages of each ancestor the kept runs share.
  const needed = new Map<string, number>();
  for (const run of kept) {
    let limit = Number.POSITIVE_INFINITY;
    const visited = new Set<string>();
    for (let row: LineageRow | undefined = run; row?.forkOf != null; row = rows.get(row.forkOf)) {
      // In a damaged store, a run may be its own ancestor.
      if (visited.has(row.id)) break;
      visited.add(row.id);
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
  // Only forks can lose messages to a prune.
  const forks = remove.length + stub.length === 0 ? [] : kept.filter(({ forkOf }) => forkOf !== null);
  return { remove, stub, prove: forks.map(({ id, seq }) => ({ runId: id, seq })) };
}

function isOpen(status: LineageRow["status"]): boolean {
  return status === "running" || status === "needs-human";
}
