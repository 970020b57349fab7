// The journal in one SQLite file: the default, and part of a cell's checkpoints. Every write is one immediate transaction
// that checks the epoch and the position first (INV-4). Writes that wait at the same time share a commit; a group with a
// `full` write is synced, and everything before it with it.
import { statSync } from "node:fs";
import type { Clock } from "../../platform/clock.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import {
  createGroupCommit,
  type DatabaseSpec,
  type DatabaseSync,
  databaseError,
  openDatabase,
  openDatabaseInMemory,
  type Sync,
  whenUnlocked,
} from "../../platform/sqlite.ts";
import { isEnded, nextHead, verdictOf } from "./head.ts";
import type {
  EntryRow,
  HeadRow,
  InboxRow,
  Journal,
  JournalQuery,
  JournalVerdict,
  JournalWrite,
  LeaseClaim,
  Settlement,
  WaitRow,
} from "./journal.ts";
import { allOf, applyPrune, entriesOf } from "./sqlite-lineage.ts";
import { RUNS_DATABASE } from "./sqlite-migrations.ts";
import { type ChangeNotifier, createChangeNotifier, createMemoryNotifier } from "./sqlite-notifier.ts";
import { createOldRowsMove } from "./sqlite-old-rows.ts";
import { claimQueued, readQueues, takeRate, writeQueue } from "./sqlite-queue.ts";
import { findHead, prepareOnce, putEntries, type Statements, toHead, toWait } from "./sqlite-rows.ts";

/** Opens or creates the database at `path` (mode 0600) and migrates it. */
export function openSqliteJournal(machine: Machine, path: string, spec: DatabaseSpec): Journal {
  const { clock } = machine;
  const database = openDatabase(machine, path, spec);
  // From here on, a lock of another process is waited for asynchronously.
  database.exec("PRAGMA busy_timeout = 0");
  const version = database.prepare("PRAGMA data_version");
  const notifier = createChangeNotifier(clock, () =>
    database.isOpen ? Number(version.get()?.data_version) : -1,
  );
  const sizeBytes = async () => sizeOf(path) + sizeOf(`${path}-wal`);
  return {
    kind: "sqlite",
    place: path,
    survives: true,
    sizeBytes,
    ...journalOf({ database, path, spec, clock, notifier }),
  };
}

/** Creates an empty journal in memory. Its runs end with the process. */
export function createMemoryJournal(): Journal {
  const { clock } = systemMachine;
  const database = openDatabaseInMemory(RUNS_DATABASE);
  const notifier = createMemoryNotifier();
  const path = "memory";
  const journal = journalOf({ database, path, spec: RUNS_DATABASE, clock, notifier });
  return { kind: "memory", place: path, survives: false, sizeBytes: async () => 0, ...journal };
}

interface JournalParts {
  readonly database: DatabaseSync;
  readonly path: string;
  readonly spec: DatabaseSpec;
  readonly clock: Clock;
  readonly notifier: ChangeNotifier;
}

function journalOf({
  database,
  path,
  spec,
  clock,
  notifier,
}: JournalParts): Omit<Journal, "kind" | "place" | "survives" | "sizeBytes"> {
  const sql = prepareOnce(database);
  const group = createGroupCommit(database, clock);
  const move = createOldRowsMove(database, group);
  const attempt = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      if (move.isNeeded) await move.finish();
      return await work();
    } catch (error) {
      throw databaseError(error, path, spec);
    }
  };
  const read = <T>(work: () => T): Promise<T> => attempt(() => whenUnlocked(clock, work));
  const write = async <T>(runId: string, work: () => T, sync: Sync = "full"): Promise<T> => {
    const result = await attempt(() => group.run(work, sync));
    notifier.changed(runId);
    return result;
  };
  const signal = async <T>(runId: string, work: () => T): Promise<T> => {
    const result = await write(runId, work);
    notifier.signalled(runId);
    return result;
  };
  return {
    insert: (head, entries, waits) => write(head.id, () => insertRun(sql, head, entries, waits)),
    write: (each) => write(each.runId, () => writeRun(sql, each), each.sync),
    readHead: (runId) => read(() => optional(findHead(sql, runId))),
    readEntries: (runId, afterSeq) => read(() => entriesOf(sql, runId, afterSeq)),
    readStates: (runId) => read(() => allOf(sql, runId, "readStates")),
    list: (query) => read(() => list(sql, query)),
    swapLease: (claim) => write(claim.runId, () => swapLease(sql, claim)),
    claimQueued: async (claim) => {
      const heads = await attempt(() => group.run(() => claimQueued(sql, claim)));
      for (const { id } of heads) notifier.changed(id);
      return heads;
    },
    readQueues: () => read(() => readQueues(sql)),
    writeQueue: (queue, settings) => attempt(() => group.run(() => writeQueue(sql, queue, settings))),
    takeRate: (use) => attempt(() => group.run(() => takeRate(sql, use), "lazy")),
    readTick: (schedule) => read(() => sql("readTick").get(schedule)?.tickMs as number | undefined),
    writeTick: (schedule, tickMs) =>
      attempt(() => group.run(() => sql("writeTick").run({ schedule, tickMs }).changes === 1)),
    renewLease: (runId, epoch, leaseUntilMs) =>
      write(runId, () => sql("renewLease").run({ runId, epoch, leaseUntilMs }).changes === 1, "lazy"),
    releaseLease: (runId, epoch) =>
      write(runId, () => sql("releaseLease").run({ runId, epoch }).changes === 1),
    readWaits: (runId) => read(() => sql("readWaits").all({ runId }).map(toWait)),
    answer: (runId, waitId, answer, nowMs) =>
      signal(runId, () => answerWait(sql, { runId, waitId, answer, nowMs })),
    send: (runId, message) => signal(runId, () => send(sql, runId, message)),
    readInbox: (runId) =>
      read(() =>
        sql("readInbox")
          .all({ runId })
          .map((row) => ({ ...row }) as unknown as InboxRow),
      ),
    requestCancel: (runId, nowMs) => signal(runId, () => requestCancel(sql, runId, nowMs)),
    putParts: (runId, epoch, step, from, parts) =>
      write(runId, () => putParts(sql, { runId, epoch, step, from, parts }), "lazy"),
    readParts: (runId, step, from) => read(() => readParts(sql, runId, step, from)),
    changed: async (runId, afterSeq, abort) => {
      const known = new AbortController();
      // Before the head is read: a write between the two must not be missed.
      const changed = notifier.onChange(runId, AbortSignal.any([abort, known.signal]));
      const head = await read(() => findHead(sql, runId));
      if (head === undefined || head.seq > afterSeq) known.abort();
      await changed;
    },
    signalled: (runId, abort) => notifier.onSignal(runId, abort),
    settle: (settlement) => write(settlement.runId, () => settle(sql, settlement)),
    prune: (decide) => attempt(() => group.run(() => applyPrune(sql, decide))),
    async [Symbol.asyncDispose]() {
      notifier[Symbol.dispose]();
      if (database.isOpen) database.close();
    },
  };
}

function insertRun(
  sql: Statements,
  head: HeadRow,
  entries: readonly EntryRow[],
  waits: readonly WaitRow[] = [],
): boolean {
  const { id, agentId, parentRunId, forkOf, forkStep, format, createdAtMs, queue, caller, priority } = head;
  const { model = null, thread, definition, info, ...changing } = head;
  const identity = { id, agentId, parentRunId, forkOf, forkStep, format, createdAtMs };
  // `all` instead of `get`: it reports an error of the commit.
  const [row] = sql("insertRun").all({
    ...identity,
    queue,
    caller,
    priority,
    model,
    thread,
    definition,
    info,
  });
  if (row === undefined) {
    const known = findHead(sql, id);
    return head.owner !== null && known?.owner === head.owner && known.epoch === head.epoch;
  }
  const key = Number(row.key);
  const { status, epoch, owner, leaseUntilMs, deaths, seq, step, phase, messages, redactions } = changing;
  const { inputTokens, outputTokens, wakeMs, cancelMs, updatedAtMs, output, error } = changing;
  const lease = { status, epoch, owner, leaseUntilMs, deaths, wakeMs, cancelMs };
  const counts = { seq, step, phase, messages, redactions, inputTokens, outputTokens };
  sql("insertHead").run({ key, ...lease, ...counts, updatedAtMs, output, error });
  putEntries(sql, key, seq, entries);
  putWaits(sql, key, waits);
  return true;
}

function putWaits(sql: Statements, key: number, waits: readonly WaitRow[]): void {
  for (const { names, ...wait } of waits) sql("putWait").run({ key, ...wait, names: JSON.stringify(names) });
}

function writeRun(sql: Statements, write: JournalWrite): JournalVerdict {
  const head = findHead(sql, write.runId);
  const verdict = verdictOf(head, write);
  if (head === undefined || verdict !== "next") return verdict === "next" ? "missing" : verdict;
  const { key } = head;
  const next = nextHead(head, write);
  const { status, seq, step, phase, messages, redactions, inputTokens, outputTokens, wakeMs } = next;
  const { owner, deaths, leaseUntilMs, updatedAtMs, output, error } = next;
  const counts = { seq, step, phase, messages, redactions, inputTokens, outputTokens, wakeMs };
  const row = { key, ...counts, owner, deaths, leaseUntilMs, updatedAtMs, output, error };
  if (status === head.status) sql("moveHead").run(row);
  else sql("endHead").run({ ...row, status });
  putEntries(sql, key, write.seq, write.entries);
  putWaits(sql, key, write.waits ?? []);
  for (const id of write.taken ?? []) sql("takeMessage").run({ key, id });
  for (const entry of write.entries)
    if (entry.kind === "response") sql("removeStepParts").run({ key, step: entry.step });
  return "written";
}

function list(sql: Statements, query: JournalQuery): HeadRow[] {
  const { statuses, agentId = null, parentRunId = null, thread = null, dueMs = null, limit = -1 } = query;
  const { queue = null, idPrefix = "" } = query;
  const rows = sql("list").all({
    ...{ statuses: statuses === undefined ? null : JSON.stringify(statuses), agentId, parentRunId },
    ...{ thread, queue, idPrefix, dueMs, limit },
  });
  return rows.map(toHead);
}

function swapLease(sql: Statements, { runId, seenEpoch, owner, leaseUntilMs, nowMs }: LeaseClaim): boolean {
  const head = findHead(sql, runId);
  if (head === undefined) return false;
  if (head.epoch === seenEpoch + 1 && head.owner === owner) return true;
  if (head.epoch !== seenEpoch || isEnded(head.status)) return false;
  sql("swapLease").run({ key: head.key, owner, leaseUntilMs, nowMs });
  return true;
}

interface Answer {
  readonly runId: string;
  readonly waitId: string;
  readonly answer: string;
  readonly nowMs: number;
}

function answerWait(
  sql: Statements,
  { runId, waitId, answer, nowMs }: Answer,
): Awaited<ReturnType<Journal["answer"]>> {
  const head = findHead(sql, runId);
  const wait = sql("readWaits")
    .all({ runId })
    .map(toWait)
    .find(({ id }) => id === waitId);
  if (head === undefined || wait === undefined) return "missing";
  if (wait.state === "answered" && wait.answer === answer) return "answered";
  if (wait.state !== "open" || isEnded(head.status)) return "closed";
  if (wait.dueMs !== null && wait.dueMs <= nowMs) return "expired";
  sql("answerWait").run({ key: head.key, id: waitId, answer });
  sql("wake").run({ key: head.key, nowMs });
  return "answered";
}

function send(sql: Statements, runId: string, message: InboxRow): Awaited<ReturnType<Journal["send"]>> {
  const head = findHead(sql, runId);
  if (head === undefined || head.status === "stub") return "missing";
  const { id, name, body, sentMs } = message;
  if (isEnded(head.status) && !hasMessage(sql, runId, id)) return "ended";
  const { changes } = sql("insertMessage").run({ key: head.key, id, name, body, sentMs });
  if (changes === 0) return "duplicate";
  const waits = sql("readWaits").all({ runId }).map(toWait);
  const isAwaited = waits.some(
    ({ kind, state, names }) => kind === "signal" && state === "open" && names.includes(name),
  );
  if (isAwaited || head.status === "running") sql("wake").run({ key: head.key, nowMs: sentMs });
  return "accepted";
}

function hasMessage(sql: Statements, runId: string, id: string): boolean {
  return sql("findMessage").get({ runId, id }) !== undefined;
}

function requestCancel(sql: Statements, runId: string, nowMs: number): boolean {
  const head = findHead(sql, runId);
  if (head === undefined || isEnded(head.status)) return false;
  sql("cancel").run({ key: head.key, nowMs });
  sql("wake").run({ key: head.key, nowMs });
  return true;
}

interface PartsWrite {
  readonly runId: string;
  readonly epoch: number;
  readonly step: number;
  readonly from: number;
  readonly parts: readonly string[];
}

function putParts(sql: Statements, { runId, epoch, step, from, parts }: PartsWrite): boolean {
  const head = findHead(sql, runId);
  if (head?.epoch !== epoch) return false;
  const { key } = head;
  sql("removeParts").run({ key, step, from, epoch });
  for (const [i, body] of parts.entries()) sql("putPart").run({ key, step, position: from + i, epoch, body });
  return true;
}

function readParts(
  sql: Statements,
  runId: string,
  step: number,
  from: number,
): { epoch: number; parts: string[] } {
  const rows = sql("readParts").all({ runId, step, from }) as unknown as { epoch: number; body: string }[];
  return { epoch: rows[0]?.epoch ?? 0, parts: rows.map(({ body }) => body) };
}

function settle(sql: Statements, { runId, seenEpoch, entry, nowMs }: Settlement): boolean {
  const head = findHead(sql, runId);
  if (head?.epoch !== seenEpoch) return false;
  const { key, seq } = head;
  putEntries(sql, key, seq + 1, [entry]);
  sql("settleHead").run({ key, seq: seq + 1, nowMs });
  sql("reopen").run({ key });
  sql("wake").run({ key, nowMs });
  return true;
}

function optional(head: object | undefined): HeadRow | undefined {
  return head === undefined ? undefined : toHead(head);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
