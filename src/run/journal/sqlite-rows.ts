// Rows of the journal's SQLite tables as values, and the statements, prepared once.
import type { DatabaseSync, StatementSync } from "../../platform/sqlite.ts";
import type { EntryRow, HeadRow, StoredEntry, WaitRow } from "./journal.ts";
import { JOURNAL_SQL } from "./sqlite-schema.ts";

export type KeyedHead = HeadRow & { readonly key: number };
export type Statements = (name: keyof typeof JOURNAL_SQL) => StatementSync;

/** Prepares each statement on first use. */
export function prepareOnce(database: DatabaseSync): Statements {
  const statements = new Map<keyof typeof JOURNAL_SQL, StatementSync>();
  return (name) => {
    let statement = statements.get(name);
    if (statement === undefined) {
      statement = database.prepare(JOURNAL_SQL[name]);
      statements.set(name, statement);
    }
    return statement;
  };
}

export function findHead(sql: Statements, runId: string): KeyedHead | undefined {
  return sql("readHead").get(runId) as unknown as KeyedHead | undefined;
}

export function toHead(row: object): HeadRow {
  const { key: _, ...head } = row as unknown as KeyedHead;
  return head;
}

export function toEntry(runId: string, row: object): StoredEntry {
  const entry = row as unknown as Omit<StoredEntry, "redacted"> & { redacted: number };
  return { ...entry, runId, redacted: entry.redacted === 1 };
}

export function toWait(row: object): WaitRow {
  const wait = row as unknown as Omit<WaitRow, "names"> & { names: string };
  return { ...wait, names: JSON.parse(wait.names) };
}

export function putEntries(sql: Statements, key: number, seq: number, entries: readonly EntryRow[]): void {
  for (const entry of entries) {
    const { step, kind, call, state, attempts, dueMs, digest, name, callId, startedMs, endedMs, body } =
      entry;
    const place = { key, step, kind, call, seq, state, attempts, dueMs, digest, name };
    const times = { class: entry.class, callId, startedMs, endedMs };
    sql("putEntry").run({ ...place, ...times, redacted: entry.redacted ? 1 : 0, body });
  }
}
