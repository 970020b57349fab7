// Rows for the conformance suite of journals.
import {
  type EntryRow,
  type HeadRow,
  JOURNAL_FORMAT,
  type Journal,
  type JournalWrite,
} from "../run/journal/journal.ts";

/** An empty place for journals; `open` opens the same one again, as another process would. */
export interface JournalPlace {
  open(): Promise<Journal>;
  dispose(): Promise<void>;
}

/** A new run, owned by "me" at epoch 1. */
export function headRow(id: string, change: Partial<HeadRow> = {}): HeadRow {
  return {
    ...{ id, agentId: "a", parentRunId: null, forkOf: null, forkStep: null, format: JOURNAL_FORMAT },
    ...{ createdAtMs: 1, queue: null, caller: null, priority: 0, thread: null, definition: null },
    ...{ info: "{}", status: "running", epoch: 1, owner: "me", leaseUntilMs: 100, deaths: 0, seq: 0 },
    ...{ step: 0, phase: 0, messages: 0, redactions: 0, inputTokens: 0, outputTokens: 0 },
    ...{ wakeMs: null, cancelMs: null, updatedAtMs: 1, output: null, error: null },
    ...change,
  };
}

/** A finished entry. */
export function entryRow(
  step: number,
  kind: EntryRow["kind"],
  call = 0,
  change: Partial<EntryRow> = {},
): EntryRow {
  return {
    ...{ step, kind, call, state: "done", attempts: 1, dueMs: null, digest: null, name: null, class: null },
    ...{ callId: null, startedMs: null, endedMs: null, redacted: false, body: "{}" },
    ...change,
  };
}

/** A write of the owner that `headRow` names. */
export function journalWrite(
  runId: string,
  seq: number,
  entries: readonly EntryRow[],
  change: Partial<JournalWrite> = {},
): JournalWrite {
  return { runId, epoch: 1, seq, nowMs: 2, leaseUntilMs: 200, sync: "full", entries, ...change };
}

/** Declares one test on an empty place. */
export type Test = (title: string, body: (journal: Journal, place: JournalPlace) => Promise<void>) => void;
