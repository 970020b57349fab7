// Rows of the journal as parameters of PostgreSQL statements: one array per column.
import type { EntryRow, HeadRow, JournalWrite } from "./journal.ts";

export function toHead(row: (HeadRow & { readonly key: number }) | undefined): HeadRow | undefined {
  if (row === undefined) return undefined;
  const { key: _, ...head } = row;
  return head;
}

/** Heads of new runs with their position in the batch, in the order of `n` in the statement `insert`. */
export function headArrays(heads: readonly HeadRow[]): unknown[][] {
  const column = <T>(value: (head: HeadRow) => T) => heads.map(value);
  return [
    heads.map((_, i) => i),
    ...[column(({ id }) => id), column(({ agentId }) => agentId), column((head) => head.parentRunId)],
    ...[column((head) => head.forkOf), column((head) => head.forkStep), column((head) => head.format)],
    ...[column((head) => head.createdAtMs), column((head) => head.queue), column((head) => head.caller)],
    ...[column((head) => head.priority), column((head) => head.model ?? null), column((head) => head.thread)],
    ...[column((head) => head.definition), column((head) => head.info), column((head) => head.status)],
    ...[column((head) => head.epoch), column((head) => head.owner), column((head) => head.leaseUntilMs)],
    ...[column((head) => head.deaths), column((head) => head.seq), column((head) => head.step)],
    ...[column((head) => head.phase), column((head) => head.messages), column((head) => head.redactions)],
    ...[column((head) => head.inputTokens), column((head) => head.outputTokens)],
    ...[column((head) => head.wakeMs), column((head) => head.cancelMs), column((head) => head.updatedAtMs)],
    ...[column((head) => head.output), column((head) => head.error)],
  ];
}

/** In the order of `w` in the statement `write`. */
export function writeArrays(writes: readonly JournalWrite[]): unknown[][] {
  const column = <T>(value: (write: JournalWrite) => T) => writes.map(value);
  return [
    writes.map((_, i) => i),
    column(({ runId }) => runId),
    column(({ epoch }) => epoch),
    column(({ seq }) => seq),
    column(({ nowMs }) => nowMs),
    column(({ leaseUntilMs }) => leaseUntilMs),
    column(({ head }) => head?.status ?? null),
    column(({ head }) => head?.step ?? null),
    column(({ head }) => head?.phase ?? null),
    column(({ head }) => head?.messages ?? null),
    column(({ head }) => head?.inputTokens ?? null),
    column(({ head }) => head?.outputTokens ?? null),
    column(({ head }) => head?.wakeMs ?? null),
    column(({ head }) => head?.wakeMs !== undefined),
    column(({ head }) => head?.output ?? null),
    column(({ head }) => head?.output !== undefined),
    column(({ head }) => head?.error ?? null),
    column(({ head }) => head?.error !== undefined),
    column(({ redactions }) => redactions ?? 0),
  ];
}

/** Entries with the position of their write in the batch, in the order of `e` in the statements. */
export function entryArrays(entries: readonly (readonly [write: number, entry: EntryRow])[]): unknown[][] {
  const column = <T>(value: (entry: EntryRow) => T) => entries.map(([, entry]) => value(entry));
  return [
    entries.map(([write]) => write),
    column(({ step }) => step),
    column(({ kind }) => kind),
    column(({ call }) => call),
    column(({ state }) => state),
    column(({ attempts }) => attempts),
    column(({ dueMs }) => dueMs),
    column(({ digest }) => digest),
    column(({ name }) => withoutNul(name)),
    column((entry) => entry.class),
    column(({ callId }) => withoutNul(callId)),
    column(({ startedMs }) => startedMs),
    column(({ endedMs }) => endedMs),
    column(({ redacted }) => redacted),
    column(({ body }) => body),
  ];
}

/** The model chooses these, and text in PostgreSQL cannot hold a NUL character. */
function withoutNul(text: string | null): string | null {
  return text?.replaceAll("\u0000", "\ufffd") ?? null;
}
