// Entries and heads as values, and their conversion from and to rows. All text passes through the seal in both directions.

import type { EntryRow, HeadRow, StoredEntry } from "../journal/journal.ts";
import { effectId } from "../model/ledger.ts";
import type { Effect, EffectState, Json } from "../model/types.ts";
import { decodeValue, encodeRecord } from "./codec.ts";
import type { Seal } from "./seal.ts";

/** An entry with its value; see `EntryRow`. */
export interface Entry extends Omit<EntryRow, "body"> {
  readonly value: unknown;
  /** The run that holds it: an ancestor for the shared steps of a fork. Absent until it is read back. */
  readonly holder?: string;
}

/** The value of an effect entry. */
export interface EffectValue {
  readonly output?: unknown;
  readonly error?: string;
  /** The error as it was thrown, if it can be stored. */
  readonly thrown?: unknown;
  /** The idempotency key where the id is not unique. */
  readonly key?: string;
  /** Set on a call that a human retries: what was interrupted in it may be repeated. */
  readonly retried?: boolean;
}

/** An entry without anything but its key and value. */
export function entryOf(
  key: Pick<EntryRow, "step" | "kind" | "call">,
  value: unknown,
  more: Partial<Omit<Entry, "value">> = {},
): Entry {
  return {
    ...{ state: "done", attempts: 1, dueMs: null, digest: null, name: null, class: null, callId: null },
    ...{ startedMs: null, endedMs: null, redacted: false },
    ...key,
    ...more,
    value,
  } as Entry;
}

/** Names an entry within its run. */
export function keyOf(step: number, kind: string, call: number): string {
  return `${step} ${kind} ${call}`;
}

function place(runId: string, { step, kind, call }: Pick<EntryRow, "step" | "kind" | "call">): string {
  return `run ${runId}, ${kind} ${step}.${call}`;
}

/** An entry as a row, and the number of secrets removed from it. */
export async function sealEntry(
  seal: Seal,
  runId: string,
  entry: Entry,
): Promise<{ row: EntryRow; redactions: number }> {
  const { value, holder: _, ...rest } = entry;
  // The model chooses these; PostgreSQL text cannot hold a NUL character.
  const clean = (text: string | null) => text?.replaceAll("\u0000", "\ufffd") ?? null;
  const row = { ...rest, name: clean(rest.name), callId: clean(rest.callId), body: null };
  if (value === undefined) return { row, redactions: 0 };
  const { text, redactions } = await seal.seal(place(runId, entry), encodeRecord(value, entry.kind));
  return { row: { ...row, redacted: entry.redacted || redactions > 0, body: text }, redactions };
}

/** The entry of a row. Its place names the run that holds it, an ancestor for shared steps. */
export function openEntry(seal: Seal, row: StoredEntry): Entry {
  const { body, runId, seq: _, ...rest } = row;
  const value = body === null ? undefined : decodeValue(seal.open(place(runId, row), body) as Json);
  return { ...rest, value, holder: runId };
}

/** The ledger's view of an effect entry. */
export function effectOf(runId: string, entry: Entry): Effect {
  const { output, error, key } = (entry.value ?? {}) as EffectValue;
  return {
    id: effectId(runId, entry.step, entry.call),
    runId,
    step: entry.step,
    call: entry.call,
    callId: entry.callId ?? "",
    tool: entry.name ?? "",
    class: entry.class ?? "once",
    state: entry.state as EffectState,
    attempts: entry.attempts,
    preparedAtMs: entry.startedMs ?? 0,
    startedAtMs: entry.startedMs,
    endedAtMs: entry.endedMs,
    output: output === undefined ? null : encodeRecord(output),
    error: error ?? null,
    inputRedacted: entry.redacted,
    ...(entry.digest === null ? {} : { inputDigest: entry.digest }),
    ...(key === undefined ? {} : { key }),
  };
}

/** The texts of a head that are sealed. */
export const HEAD_PLACES = {
  info: (runId: string) => `run ${runId}, info`,
  output: (runId: string) => `run ${runId}, output`,
  error: (runId: string) => `run ${runId}, error`,
  wait: (runId: string, id: string) => `run ${runId}, wait ${id}`,
  message: (runId: string, id: string) => `run ${runId}, inbox ${id}`,
} as const;

/** What a new head has in common with all others. */
export const NEW_HEAD = {
  ...{ status: "running", epoch: 1, deaths: 0, seq: 0, step: 0, phase: 0, messages: 0, inputTokens: 0 },
  ...{ outputTokens: 0, wakeMs: null, cancelMs: null, output: null, error: null, parentRunId: null },
  ...{ forkOf: null, forkStep: null, queue: null, caller: null, priority: 0, thread: null, definition: null },
} as const satisfies Partial<HeadRow>;
