// What a PostgreSQL journal writes often: new runs and the writes of their owners. Everything that waits is sent together,
// each write fenced separately (INV-4): one statement with the new runs and one with the writes, at the same time over two
// connections; one that fails does not affect the other. Writes of started runs go first: a process with more work than
// the server can take finishes what it has started, instead of keeping half-finished runs in memory.
import type { Clock } from "../../platform/clock.ts";
import { verdictOf } from "./head.ts";
import type { EntryRow, HeadRow, JournalVerdict, JournalWrite } from "./journal.ts";
import { entryArrays, headArrays, writeArrays } from "./postgres-rows.ts";
import type { PG_JOURNAL_SQL } from "./postgres-schema.ts";
import { createWriteBatches } from "./write-batch.ts";

export type Name = keyof typeof PG_JOURNAL_SQL;
/** Executes a statement of the journal. */
export type Query = <Row extends object>(
  name: Name,
  ...values: readonly unknown[]
) => Promise<{ rows: Row[]; count: number; repeated: boolean }>;
export type KeyedHead = HeadRow & { readonly key: number };

/** A run to be added. */
export interface NewRun {
  readonly head: HeadRow;
  readonly entries: readonly EntryRow[];
}

type Request = { readonly runId: string; readonly sinceMs: number } & (
  | { readonly begin: NewRun }
  | { readonly write: JournalWrite }
);

/** More do not help on one server; fewer leave it idle while a reply is in transit. */
const MAX_BATCHES_IN_FLIGHT = 2;
/** Everything that waited for a batch continues at the same time: larger batches stall the event loop longer than they save commits. */
const BATCH_LIMIT = 64;
/** A batch starts at least this many new runs, however many writes wait, so that no run waits forever to start. */
const MIN_NEW_RUNS_PER_BATCH = 4;

/** Leases are not corrected for a shorter wait. */
const LONG_WAIT_MS = 1000;

/** The functions that insert and write runs. `begin` resolves to false when the id is taken. */
export function createPostgresBatches(
  query: Query,
  clock: Pick<Clock, "monotonicMs">,
): {
  begin(head: HeadRow, entries: readonly EntryRow[]): Promise<boolean>;
  write(write: JournalWrite): Promise<JournalVerdict>;
} {
  // A lease lasts from the moment at which it is sent: a run that waited long for its batch must not start with an expired one.
  const afterWait = (each: Request): Request => {
    const waitedMs = Math.floor(clock.monotonicMs() - each.sinceMs);
    if (waitedMs < LONG_WAIT_MS) return each;
    if ("write" in each) return { ...each, write: withLater(each.write, waitedMs) };
    return { ...each, begin: { ...each.begin, head: withLater(each.begin.head, waitedMs) } };
  };
  const request = createWriteBatches<Request, JournalVerdict | "taken">({
    parallel: MAX_BATCHES_IN_FLIGHT,
    maxWrites: BATCH_LIMIT,
    keyOf: ({ runId }) => runId,
    isLow: (each) => "begin" in each,
    minLow: MIN_NEW_RUNS_PER_BATCH,
    send: (requests) => send(query, requests.map(afterWait)),
    sendOne: async (request) => {
      const each = afterWait(request);
      return (
        await ("begin" in each ? insertRuns(query, [each.begin]) : sendWrites(query, [each.write]))
      )[0]!;
    },
  });
  return {
    begin: async (head, entries) =>
      (await request({ runId: head.id, sinceMs: clock.monotonicMs(), begin: { head, entries } })) ===
      "written",
    write: (write) =>
      request({ runId: write.runId, sinceMs: clock.monotonicMs(), write }) as Promise<JournalVerdict>,
  };
}

function withLater<Row extends { readonly leaseUntilMs: number }>(row: Row, ms: number): Row {
  return row.leaseUntilMs === 0 ? row : { ...row, leaseUntilMs: row.leaseUntilMs + ms };
}

/** The results; undefined for those of a statement that failed. The other one may have been committed: it is not repeated. */
async function send(
  query: Query,
  requests: readonly Request[],
): Promise<(JournalVerdict | "taken" | undefined)[]> {
  const [inserts, updates] = await Promise.allSettled([
    insertRuns(
      query,
      requests.flatMap((each) => ("begin" in each ? [each.begin] : [])),
    ),
    sendWrites(
      query,
      requests.flatMap((each) => ("write" in each ? [each.write] : [])),
    ),
  ]);
  const [inserted, written] = [inserts, updates].map((half) =>
    half.status === "fulfilled" ? half.value.values() : undefined,
  );
  return requests.map((each) => ("begin" in each ? inserted : written)?.next().value);
}

/** Adds runs whose ids are distinct. */
export async function insertRuns(query: Query, runs: readonly NewRun[]): Promise<("written" | "taken")[]> {
  if (runs.length === 0) return [];
  const entries = runs.flatMap((run, i) => run.entries.map((entry) => [i, entry] as const));
  const heads = headArrays(runs.map(({ head }) => head));
  const { rows } = await query<{ id: string }>("insert", ...heads, ...entryArrays(entries));
  const added = new Set(rows.map(({ id }) => id));
  const verdictOn = async ({ head: { id, owner, epoch } }: NewRun) => {
    if (added.has(id)) return "written";
    // The server may have stopped between the commit and its reply.
    const known = (await query<KeyedHead>("readHead", id)).rows[0];
    return owner !== null && known?.owner === owner && known.epoch === epoch ? "written" : "taken";
  };
  return Promise.all(runs.map(verdictOn));
}

/** Sends writes as one statement. */
export async function sendWrites(query: Query, writes: readonly JournalWrite[]): Promise<JournalVerdict[]> {
  if (writes.length === 0) return [];
  const sync = writes.some((write) => write.sync === "full") ? "on" : "off";
  const entries = writes.flatMap((write, i) => write.entries.map((entry) => [i, entry] as const));
  const values = [...writeArrays(writes), ...entryArrays(entries), sync];
  const waits = writes.flatMap((write, i) => (write.waits ?? []).map((wait) => ({ write: i, ...wait })));
  const taken = writes.flatMap((write, i) => (write.taken ?? []).map((id) => [i, id] as const));
  const { rows } =
    waits.length + taken.length === 0
      ? await query<{ write: number }>("write", ...values)
      : await query<{ write: number }>(
          "writeWaits",
          ...[...values, JSON.stringify(waits)],
          ...[taken.map(([i]) => i), taken.map(([, id]) => id)],
        );
  const written = new Set(rows.map(({ write }) => write));
  if (written.size === writes.length) return writes.map(() => "written");
  const refused = writes.filter((_, i) => !written.has(i)).map(({ runId }) => runId);
  const heads = (await query<Pick<HeadRow, "id" | "epoch" | "seq" | "status">>("readHeads", refused)).rows;
  return writes.map((write, i) => {
    if (written.has(i)) return "written";
    const verdict = verdictOf(
      heads.find(({ id }) => id === write.runId),
      write,
    );
    // It became applicable in between: another process changed the head, so this write is no longer the owner's.
    return verdict === "next" ? "stale" : verdict;
  });
}
