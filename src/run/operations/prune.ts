// Removes ended runs: by age, status and number, or one by its id. What to remove is decided by pure functions, inside one
// transaction of the journal, so that a fork or claim at the same time either finds the run or is seen by the plan.
import { LazarusError } from "../../platform/errors.ts";
import { isEnded } from "../journal/head.ts";
import {
  type HeadRow,
  JOURNAL_FORMAT,
  type JournalPrunePlan,
  type JournalStatus,
  type Lineage,
  type PlannedRun,
} from "../journal/journal.ts";
import { findHead, isHeld, type RunLog, timeOf } from "../log/run-log.ts";
import type { EndStatus } from "../model/types.ts";

/** How long ended runs are kept. */
export interface RetentionPolicy {
  /** Runs that ended longer ago than this are removed. */
  readonly olderThanMs: number;
  /** This many of the newest ended runs are kept regardless of age. */
  readonly keepLast?: number | undefined;
  /** Only runs that ended like this. Default: all. */
  readonly statuses?: readonly EndStatus[] | undefined;
}

/** What a prune removed. */
export interface PruneReport {
  readonly removed: readonly string[];
  /** Runs of which only the steps that forks share are left. */
  readonly stubs: readonly string[];
}

/** Removes ended runs by policy. */
export function pruneRuns(log: RunLog, policy: RetentionPolicy): Promise<PruneReport> {
  return removeRuns(log, (lineage) => choosePrunable(lineage, policy, timeOf(log)));
}

/** How a run is deleted. */
export interface DeleteOptions {
  /** Also delete a run that has not ended. Never one that is being executed. Default false. */
  readonly force?: boolean | undefined;
}

/** Removes one run; false when there is none. Throws RUN_BUSY for one that is being executed or, without `force`, has not ended. */
export async function deleteRun(
  log: RunLog,
  runId: string,
  { force = false }: DeleteOptions = {},
): Promise<boolean> {
  const head = await findHead(log, runId);
  if (head === undefined) return false;
  if (head.status === "running" && isHeld(log, head)) throw busy(runId, `is being executed by ${head.owner}`);
  if (!force) await refuseNeeded(log, head);
  const { removed } = await removeRuns(log, (lineage) => {
    const current = lineage.find(({ id, status }) => id === runId && status !== "stub");
    if (current !== undefined && current.epoch !== head.epoch)
      throw busy(runId, "has changed in the meantime");
    return current === undefined ? [] : [runId];
  });
  return removed.length > 0;
}

/** Refuses a run that has not ended, and a child whose parent may ask for its result again. */
async function refuseNeeded(log: RunLog, { id, status, parentRunId }: HeadRow): Promise<void> {
  const hint = `end it first: lazarus runs cancel ${id}; in the library, deleteRun(log, id, { force: true }) deletes it anyway`;
  if (!isEnded(status)) throw busy(id, status === "running" ? "can be resumed" : `is ${status}`, hint);
  const parent = parentRunId === null ? undefined : await findHead(log, parentRunId);
  if (parent !== undefined && !isEnded(parent.status))
    throw busy(id, `is a child of run ${parent.id}, which has not ended and may ask for its result again`);
}

function busy(
  runId: string,
  problem: string,
  hint = "run the same command again when it has ended",
): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} ${problem}; nothing was deleted`, { hint });
}

async function removeRuns(
  { journal }: RunLog,
  choose: (lineage: readonly Lineage[]) => readonly string[],
): Promise<PruneReport> {
  let removed: readonly string[] = [];
  const plan = await journal.prune((lineage) => {
    removed = choose(lineage);
    return planPrune(lineage, new Set(removed));
  });
  return { removed, stubs: plan.stub.map(({ runId }) => runId) };
}

/**
 * The ended runs that the policy removes. Never one with an effect of unknown outcome, of another format, or whose parent
 * is open: an interrupted tool call asks for the results of its child runs again. Pure.
 */
export function choosePrunable(
  lineage: readonly Lineage[],
  { olderThanMs, keepLast = 0, statuses }: RetentionPolicy,
  nowMs: number,
): string[] {
  const byId = new Map(lineage.map((row) => [row.id, row]));
  const hasOpenParent = ({ parentRunId }: Lineage) => {
    const parent = parentRunId === null ? undefined : byId.get(parentRunId);
    return parent !== undefined && !isEnded(parent.status);
  };
  return lineage
    .filter(({ status, unknownEffects, format }) => {
      return isEnded(status) && status !== "stub" && unknownEffects === 0 && format === JOURNAL_FORMAT;
    })
    .sort((a, b) => b.updatedAtMs - a.updatedAtMs)
    .slice(keepLast)
    .filter(
      (row) =>
        row.updatedAtMs <= nowMs - olderThanMs && isChosen(row.status, statuses) && !hasOpenParent(row),
    )
    .map(({ id }) => id);
}

function isChosen(status: JournalStatus, statuses: readonly EndStatus[] | undefined): boolean {
  return statuses === undefined || (statuses as readonly JournalStatus[]).includes(status);
}

/**
 * Which of the chosen runs to remove, and which to reduce to stubs, because the history of kept forks begins with their
 * steps. A stub is removed with its last fork. Pure.
 */
export function planPrune(lineage: readonly Lineage[], chosen: ReadonlySet<string>): JournalPrunePlan {
  const rows = new Map(lineage.map((row) => [row.id, row]));
  const kept = lineage.filter((row) => row.status !== "stub" && !chosen.has(row.id));
  /** The last step of each ancestor that kept runs share. */
  const needed = new Map<string, number>();
  for (const run of kept) {
    let limit = Number.POSITIVE_INFINITY;
    const visited = new Set<string>();
    for (let row: Lineage | undefined = run; row?.forkOf != null; row = rows.get(row.forkOf)) {
      // In a damaged journal, a run may be its own ancestor.
      if (visited.has(row.id)) break;
      visited.add(row.id);
      limit = Math.min(limit, row.forkStep ?? 0);
      needed.set(row.forkOf, Math.max(limit, needed.get(row.forkOf) ?? 0));
    }
  }
  const remove: PlannedRun[] = [];
  const stub: JournalPrunePlan["stub"][number][] = [];
  for (const { id, status, epoch, format } of lineage) {
    if (format !== JOURNAL_FORMAT || (status !== "stub" && !chosen.has(id))) continue;
    const keepStep = needed.get(id);
    const seen = { runId: id, epoch };
    if (keepStep === undefined) remove.push(seen);
    else stub.push({ ...seen, keepStep });
  }
  // Only forks can lose steps to a prune.
  const forks = remove.length + stub.length === 0 ? [] : kept.filter(({ forkOf }) => forkOf !== null);
  return { remove, stub, prove: forks.map(({ id, step }) => ({ runId: id, step })) };
}
