// The journal in PostgreSQL, for many hosts. The writes of all runs that wait at the same time are one statement and one
// commit, each run fenced by its epoch and position (INV-4). While the server is unreachable, calls wait and retry; a
// repeated write is applied once. A write with large bodies is a transaction of its own. Messages, answers and requests to cancel are announced with NOTIFY; followers poll,
// because a NOTIFY for every write would serialize all commits.
import type { PoolClient } from "pg";
import type { Machine } from "../../platform/machine.ts";
import type { PostgresOptions } from "../../platform/postgres/options.ts";
import { openPostgresPool, type PostgresPool, type PostgresSpec } from "../../platform/postgres/pool.ts";
import { isEnded, verdictOf } from "./head.ts";
import type {
  EntryRow,
  HeadRow,
  InboxRow,
  Journal,
  JournalPrunePlan,
  JournalVerdict,
  JournalWrite,
  Lineage,
  StoredEntry,
  WaitRow,
} from "./journal.ts";
import {
  createPostgresBatches,
  insertRuns,
  type KeyedHead,
  type Name,
  type Query,
  sendWrites,
} from "./postgres-batches.ts";
import { createChangeNotifier, type RunVersion } from "./postgres-notifier.ts";
import { moveOldRows } from "./postgres-old-rows.ts";
import { claimQueued, type Run, takeRate } from "./postgres-queue.ts";
import { entryArrays, toHead } from "./postgres-rows.ts";
import { PG_JOURNAL_SQL } from "./postgres-schema.ts";
import type { QueueSettings } from "./queue.ts";
import { claimedDuringPrune, missingResponses } from "./refusal.ts";

/** Connects and migrates. */
export async function openPostgresJournal(
  machine: Machine,
  connection: string,
  spec: PostgresSpec,
  options: PostgresOptions = {},
): Promise<Journal> {
  const pool = await openPool(machine, connection, spec, options);
  const query: Query = (name, ...values) => pool.query(`journal.${name}`, PG_JOURNAL_SQL[name], values);
  const transaction = <T>(work: (run: Run) => Promise<T>): Promise<T> =>
    pool.inTransaction((client) => work(runOn(client, pool.schema)));
  const notifier = createChangeNotifier(
    machine.clock,
    pool,
    async (ids) => (await query<RunVersion>("readVersions", ids)).rows,
  );
  const { begin, write } = createPostgresBatches(query, machine.clock);
  const count = async (name: Name, ...values: readonly unknown[]) => (await query(name, ...values)).count;
  return {
    kind: "postgres",
    place: pool.place,
    survives: true,
    insert: (head, entries, waits = []) =>
      waits.length === 0
        ? begin(head, entries)
        : transaction((run) => insertWithWaits(run, head, entries, waits)),
    write: async (each) => {
      const verdict = await (isLarge(each) ? transaction((run) => writeLarge(run, each)) : write(each));
      notifier.changed(each.runId);
      return verdict;
    },
    readHead: async (runId) => toHead((await query<KeyedHead>("readHead", runId)).rows[0]),
    readEntries: async (runId, afterSeq = -1) =>
      (
        await (afterSeq < 0
          ? query<StoredEntry>("readEntries", runId)
          : query<StoredEntry>("readEntriesAfter", runId, afterSeq))
      ).rows,
    readStates: async (runId) => (await query<StoredEntry>("readStates", runId)).rows,
    async list({ statuses, agentId, parentRunId, thread, dueMs, limit, queue, idPrefix = "" }) {
      const filters = [statuses ?? null, agentId ?? null, parentRunId ?? null, thread ?? null, dueMs ?? null];
      const { rows } = await query<KeyedHead>("list", ...filters, limit ?? null, queue ?? null, idPrefix);
      return rows.map((row) => toHead(row)!);
    },
    async swapLease({ runId, seenEpoch, owner, leaseUntilMs, nowMs }) {
      if ((await count("swapLease", runId, seenEpoch, owner, leaseUntilMs, nowMs)) === 1) return true;
      // The reply to this very claim may have been lost.
      const head = (await query<KeyedHead>("readHead", runId)).rows[0];
      return head?.epoch === seenEpoch + 1 && head.owner === owner;
    },
    ...queues(query, transaction),
    renewLease: async (runId, epoch, untilMs) => (await count("renewLease", runId, epoch, untilMs)) === 1,
    releaseLease: async (runId, epoch) => (await count("releaseLease", runId, epoch)) === 1,
    readWaits: async (runId) => (await query<WaitRow>("readWaits", runId)).rows,
    answer: (runId, waitId, answer, nowMs) =>
      transaction((run) => answerWait(run, notifier.channel, { runId, waitId, answer, nowMs })),
    send: (runId, message) => transaction((run) => send(run, notifier.channel, runId, message)),
    readInbox: async (runId) => (await query<InboxRow>("readInbox", runId)).rows,
    requestCancel: (runId, nowMs) => transaction((run) => requestCancel(run, notifier.channel, runId, nowMs)),
    async putParts(runId, epoch, step, from, parts) {
      const isOwner = (await count("putParts", runId, epoch, step, from, parts, "off")) === 1;
      notifier.changed(runId);
      return isOwner;
    },
    async readParts(runId, step, from) {
      const { rows } = await query<{ epoch: number; body: string }>("readParts", runId, step, from);
      return { epoch: rows[0]?.epoch ?? 0, parts: rows.map(({ body }) => body) };
    },
    changed: async (runId, afterSeq, signal) => {
      const head = (await query<KeyedHead>("readHead", runId)).rows[0];
      if (head !== undefined && head.seq <= afterSeq) await notifier.onChange(runId, afterSeq, signal);
    },
    signalled: (runId, signal) => notifier.onSignal(runId, signal),
    settle: ({ runId, seenEpoch, entry, nowMs }) =>
      transaction(async (run) => {
        const head = await lockHead(run, runId);
        if (head?.epoch !== seenEpoch) return false;
        await run("putEntry", head.key, head.seq + 1, ...entryArrays([[0, entry]]));
        await run("settleHead", head.key, head.seq + 1, nowMs);
        await run("reopen", head.key);
        await run("wake", head.key, nowMs);
        return true;
      }),
    prune: (decide) => transaction((run) => prune(run, decide)),
    sizeBytes: async () => (await query<{ n: number }>("sizeBytes", pool.schema)).rows[0]!.n,
    async [Symbol.asyncDispose]() {
      await notifier[Symbol.asyncDispose]();
      await pool[Symbol.asyncDispose]();
    },
  };
}

async function openPool(
  { clock }: Machine,
  connection: string,
  spec: PostgresSpec,
  options: PostgresOptions,
): Promise<PostgresPool> {
  const pool = await openPostgresPool(clock, connection, spec, options);
  try {
    await moveOldRows(pool);
    return pool;
  } catch (error) {
    await pool[Symbol.asyncDispose]();
    throw error;
  }
}

function runOn(client: PoolClient, schema: string): Run {
  return (name, ...values) =>
    client.query(PG_JOURNAL_SQL[name].replaceAll("%.", `${schema}.`), [
      ...values,
    ]) as unknown as ReturnType<Run>;
}

function queryOn(run: Run): Query {
  return async (name, ...values) => {
    const { rows, rowCount } = await run(name, ...values);
    return { rows, count: rowCount ?? 0, repeated: false };
  };
}

/** Writes of this many characters are not batched: the parameters of a statement must fit into one string and one message. */
const LARGE = 4_000_000;

function isLarge({ entries }: JournalWrite): boolean {
  return entries.reduce((sum, { body }) => sum + (body?.length ?? 0), 0) > LARGE;
}

/** Writes each entry with a statement of its own. */
async function writeLarge(run: Run, write: JournalWrite): Promise<JournalVerdict> {
  const head = await lockHead(run, write.runId);
  const verdict = verdictOf(head, write);
  if (verdict !== "next") return verdict;
  for (const entry of write.entries)
    await run("putEntry", head!.key, write.seq, ...entryArrays([[0, entry]]));
  return (await sendWrites(queryOn(run), [{ ...write, entries: [] }]))[0]!;
}

async function insertWithWaits(
  run: Run,
  head: HeadRow,
  entries: readonly EntryRow[],
  waits: readonly WaitRow[],
): Promise<boolean> {
  if ((await insertRuns(queryOn(run), [{ head, entries }]))[0] !== "written") return false;
  await run("insertWaits", head.id, JSON.stringify(waits));
  return true;
}

function queues(
  query: Query,
  transaction: <T>(work: (run: Run) => Promise<T>) => Promise<T>,
): Pick<Journal, "claimQueued" | "readQueues" | "writeQueue" | "takeRate" | "readTick" | "writeTick"> {
  return {
    claimQueued: (claim) => transaction((run) => claimQueued(run, claim)),
    async readQueues() {
      const { rows } = await query<{ name: string; settings: QueueSettings }>("readQueues");
      return new Map(rows.map(({ name, settings }) => [name, settings]));
    },
    async writeQueue(queue, settings) {
      if (settings === null) await query("removeQueue", queue);
      else await query("writeQueue", queue, JSON.stringify(settings));
    },
    takeRate: (use) => transaction((run) => takeRate(run, use)),
    readTick: async (schedule) => (await query<{ tickMs: number }>("readTick", schedule)).rows[0]?.tickMs,
    writeTick: async (schedule, tickMs) => (await query("writeTick", schedule, tickMs)).count === 1,
  };
}

async function lockHead(run: Run, runId: string): Promise<KeyedHead | undefined> {
  return (await run("lockHead", runId)).rows[0];
}

interface Answer {
  readonly runId: string;
  readonly waitId: string;
  readonly answer: string;
  readonly nowMs: number;
}

async function answerWait(
  run: Run,
  channel: string,
  { runId, waitId, answer, nowMs }: Answer,
): Promise<Awaited<ReturnType<Journal["answer"]>>> {
  const head = await lockHead(run, runId);
  const waits: readonly WaitRow[] = (await run("readWaits", runId)).rows;
  const wait = waits.find(({ id }) => id === waitId);
  if (head === undefined || wait === undefined) return "missing";
  if (wait.state === "answered" && wait.answer === answer) return "answered";
  if (wait.state !== "open" || isEnded(head.status)) return "closed";
  if (wait.dueMs !== null && wait.dueMs <= nowMs) return "expired";
  await run("answerWait", head.key, waitId, answer);
  await run("wake", head.key, nowMs);
  await run("notify", channel, runId);
  return "answered";
}

async function send(
  run: Run,
  channel: string,
  runId: string,
  message: InboxRow,
): Promise<Awaited<ReturnType<Journal["send"]>>> {
  const head = await lockHead(run, runId);
  if (head === undefined || head.status === "stub") return "missing";
  const { id, name, body, sentMs } = message;
  if ((await run("hasMessage", head.key, id)).rows.length > 0) return "duplicate";
  if (isEnded(head.status)) return "ended";
  await run("insertMessage", head.key, id, name, body, sentMs);
  const isAwaited = (await run("isAwaited", head.key, name)).rows.length > 0;
  if (isAwaited || head.status === "running") await run("wake", head.key, sentMs);
  await run("notify", channel, runId);
  return "accepted";
}

async function requestCancel(run: Run, channel: string, runId: string, nowMs: number): Promise<boolean> {
  const head = await lockHead(run, runId);
  if (head === undefined || isEnded(head.status)) return false;
  await run("cancel", head.key, nowMs);
  await run("wake", head.key, nowMs);
  await run("notify", channel, runId);
  return true;
}

async function prune(
  run: Run,
  decide: (lineage: readonly Lineage[]) => JournalPrunePlan,
): Promise<JournalPrunePlan> {
  await run("lockRuns");
  const plan = decide((await run("lineage")).rows);
  for (const { runId, epoch } of [...plan.stub, ...plan.remove])
    if ((await lockHead(run, runId))?.epoch !== epoch) throw claimedDuringPrune(runId);
  for (const { runId, keepStep } of plan.stub) {
    await run("removeEntriesAbove", runId, keepStep);
    for (const name of ["removeWaits", "removeInbox", "removeParts", "makeStub"] as const)
      await run(name, runId);
  }
  for (const { runId } of plan.remove) {
    await run("removeEntriesAbove", runId, -1);
    for (const name of ["removeWaits", "removeInbox", "removeParts", "removeHead", "removeRun"] as const)
      await run(name, runId);
    await run("remember", runId);
  }
  for (const { runId, step } of plan.prove) {
    const [{ n }]: [{ n: number }] = (await run("countResponses", runId)).rows as never;
    if (n !== step) throw missingResponses(runId, n, step);
  }
  return plan;
}
