// Entries of a run and its ancestors in SQLite, and the prune that keeps what forks share.
import type { JournalPrunePlan, Lineage, StoredEntry } from "./journal.ts";
import { missingResponses } from "./refusal.ts";
import { findHead, type Statements, toEntry } from "./sqlite-rows.ts";

interface Segment {
  readonly runId: string;
  readonly key: number;
  /** Steps above this one, up to `upTo`. */
  readonly above: number;
  readonly upTo: number;
}

/** The runs that hold the steps of a run: itself and its ancestors, oldest first. */
function segmentsOf(sql: Statements, runId: string): Segment[] {
  const found: Segment[] = [];
  let upTo = Number.MAX_SAFE_INTEGER;
  for (let head = findHead(sql, runId); head !== undefined; ) {
    const above = head.forkOf === null ? -1 : head.forkStep!;
    found.unshift({ runId: head.id, key: head.key, above, upTo });
    upTo = Math.min(upTo, above);
    const { forkOf }: { forkOf: string | null } = head;
    // In a damaged database, a run may be its own ancestor.
    const isKnown = found.some((each) => each.runId === forkOf);
    head = forkOf === null || isKnown ? undefined : findHead(sql, forkOf);
  }
  return found;
}

export function entriesOf(sql: Statements, runId: string, afterSeq?: number): StoredEntry[] {
  if (afterSeq !== undefined && afterSeq >= 0) {
    const head = findHead(sql, runId);
    if (head === undefined) return [];
    const rows = sql("readEntriesAfter").all({ key: head.key, seq: afterSeq });
    return rows.map((row) => toEntry(runId, row));
  }
  return allOf(sql, runId, "readEntries");
}

/** All entries of a run, as one of two statements reads them. */
export function allOf(sql: Statements, runId: string, name: "readEntries" | "readStates"): StoredEntry[] {
  return segmentsOf(sql, runId).flatMap(({ runId: owner, key, above, upTo }) =>
    sql(name)
      .all({ key, above, upTo })
      .map((row) => toEntry(owner, row)),
  );
}

export function applyPrune(
  sql: Statements,
  decide: (lineage: readonly Lineage[]) => JournalPrunePlan,
): JournalPrunePlan {
  const plan = decide(sql("lineage").all() as unknown as Lineage[]);
  for (const { runId, keepStep } of plan.stub) {
    const { key } = findHead(sql, runId)!;
    sql("removeEntriesAbove").run({ key, keepStep });
    for (const table of ["removeWaits", "removeInbox", "removeAllParts", "makeStub"] as const)
      sql(table).run(key);
  }
  for (const { runId } of plan.remove) {
    const head = findHead(sql, runId);
    if (head !== undefined) removeRun(sql, head.key);
  }
  for (const { runId, step } of plan.prove) {
    const found = segmentsOf(sql, runId).reduce((sum, { key, above, upTo }) => {
      return sum + Number(sql("countResponses").get({ key, above, upTo })?.n);
    }, 0);
    if (found !== step) throw missingResponses(runId, found, step);
  }
  return plan;
}

function removeRun(sql: Statements, key: number): void {
  const tables = [
    "removeEntries",
    "removeWaits",
    "removeInbox",
    "removeAllParts",
    "removeHead",
    "forgetRun",
  ] as const;
  for (const table of tables) sql(table).run(key);
}
