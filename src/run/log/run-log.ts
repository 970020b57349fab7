// The runs of one journal as values: begins, claims, reads and writes runs, with secrets redacted and texts sealed (INV-7),
// and keeps the effect history of the mission in step (INV-5): the end of an effect is in the history before it is in the
// journal; its start is in the journal first, whose lease decides who may write, and in the history before the tool runs.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { randomText } from "../../platform/ids.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { CLAIMABLE } from "../journal/head.ts";
import {
  type HeadRow,
  JOURNAL_FORMAT,
  type Journal,
  type JournalStatus,
  type JournalWrite,
  type WaitRow,
} from "../journal/journal.ts";
import { journalRefusal } from "../journal/refusal.ts";
import type { Effect, Json, Lease } from "../model/types.ts";
import { checkRun } from "./check.ts";
import { decodeValue, encodeValue } from "./codec.ts";
import { type Entry, effectOf, HEAD_PLACES, NEW_HEAD, openEntry, sealEntry } from "./entry.ts";
import { recallEffect, recordEnds, recordStarts, type StoreHistory } from "./history.ts";
import { DEFAULT_LEASE_MS, isOwnerAlive, isOwnerDead, judgeLease, ownerName } from "./lease.ts";
import { openOldRow, upgradeEntries } from "./old-transcript.ts";
import { createSeal, type Seal, type SealOptions } from "./seal.ts";

/** An open journal. */
export interface RunLog {
  readonly journal: Journal;
  readonly seal: Seal;
  readonly machine: Machine;
  readonly leaseMs: number;
  /** History of the mission that the store belongs to; undefined outside a cell. */
  readonly history: StoreHistory | undefined;
}

/** How a log treats secrets and leases, and on which machine it runs. */
export interface RunLogOptions extends SealOptions {
  readonly machine?: Machine;
  /** How long this process owns a run after each write or renewal, default 30000. */
  readonly leaseMs?: number;
}

/** Opens the runs of a journal. `history` is that of the mission, for a store inside a cell. */
export function createRunLog(journal: Journal, options: RunLogOptions = {}, history?: StoreHistory): RunLog {
  const machine = options.machine ?? systemMachine;
  const leaseMs = Math.ceil(options.leaseMs ?? DEFAULT_LEASE_MS);
  return { journal, seal: createSeal(machine.ids, options), machine, leaseMs, history };
}

/** What identifies a new run. */
export type NewRun = Pick<HeadRow, "id" | "agentId"> &
  Partial<Pick<HeadRow, "parentRunId" | "queue" | "caller" | "priority" | "thread" | "definition">> & {
    readonly info: unknown;
    /** Number of messages of its input. */
    readonly messages?: number;
    /** Model id, for the limits of a queue. */
    readonly model?: string | null;
  };

/** A run as it was read: its head and all entries. */
export interface LoadedRun {
  readonly head: HeadRow;
  readonly entries: readonly Entry[];
}

/** A write with values instead of texts. */
export interface LogWrite
  extends Omit<JournalWrite, "runId" | "epoch" | "nowMs" | "leaseUntilMs" | "entries" | "head"> {
  readonly entries: readonly Entry[];
  readonly head?: Omit<NonNullable<JournalWrite["head"]>, "output" | "error"> & {
    readonly output?: unknown;
    readonly error?: unknown;
  };
  /** Gives up the lease with this write. */
  readonly release?: boolean;
}

/** Wall-clock time in whole milliseconds, as stored. */
export function timeOf({ machine }: RunLog): number {
  return Math.floor(machine.clock.nowMs());
}

/** Adds a run, owned by this process. Throws RUN_ID_TAKEN. */
export async function beginRun(
  log: RunLog,
  run: NewRun,
  entries: readonly Entry[],
): Promise<{ lease: Lease; head: HeadRow }> {
  const owner = claimName(log.machine);
  const leaseUntilMs = timeOf(log) + log.leaseMs;
  const head = await insertRun(log, run, entries, { owner, leaseUntilMs });
  crashPoint("engine.begin.recorded");
  return { lease: { runId: run.id, epoch: head.epoch, owner }, head };
}

async function insertRun(
  { journal, seal, machine }: RunLog,
  run: NewRun,
  entries: readonly Entry[],
  state: Pick<HeadRow, "owner" | "leaseUntilMs"> & Partial<Pick<HeadRow, "status" | "epoch">>,
): Promise<HeadRow> {
  const nowMs = Math.floor(machine.clock.nowMs());
  const sealed = await Promise.all(entries.map((entry) => sealEntry(seal, run.id, entry)));
  const info = await seal.seal(HEAD_PLACES.info(run.id), encodeValue(run.info, "info"));
  const head: HeadRow = {
    ...NEW_HEAD,
    ...run,
    format: JOURNAL_FORMAT,
    redactions: sealed.reduce((sum, each) => sum + each.redactions, info.redactions),
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    info: info.text,
    ...state,
  };
  const rows = sealed.map(({ row }) => row);
  if (await journal.insert(head, rows)) return head;
  throw new LazarusError("RUN_ID_TAKEN", `run ${run.id} already exists in ${journal.place}`, {
    hint: "omit the run id, or choose another one",
  });
}

/** The head of a run, or undefined. Throws RUN_NEWER. */
export async function findHead({ journal }: RunLog, runId: string): Promise<HeadRow | undefined> {
  const head = await journal.readHead(runId);
  if (head === undefined || head.status === "stub") return undefined;
  if (head.format > JOURNAL_FORMAT) {
    throw new LazarusError(
      "RUN_NEWER",
      `run ${runId} has format ${head.format}; this version of Lazarus reads formats up to ${JOURNAL_FORMAT}`,
      { hint: "upgrade Lazarus on this machine: npm install lazarus@latest" },
    );
  }
  return head;
}

/** The head of a run. Throws RUN_UNKNOWN. */
export async function requireHead(log: RunLog, runId: string): Promise<HeadRow> {
  const head = await findHead(log, runId);
  if (head !== undefined) return head;
  throw new LazarusError("RUN_UNKNOWN", `no run ${JSON.stringify(runId)} in ${log.journal.place}`, {
    hint: "lazarus runs",
  });
}

/** A run and its entries, or undefined. */
export async function loadRun(log: RunLog, runId: string): Promise<LoadedRun | undefined> {
  const head = await findHead(log, runId);
  if (head === undefined) return undefined;
  const entries = await readEntries(log, runId);
  try {
    checkRun(head, entries);
  } catch (error) {
    // A run that was removed between the two reads is gone, not damaged.
    if ((await findHead(log, runId)) === undefined) return undefined;
    throw error;
  }
  return { head, entries };
}

/** Entries that changed after write `afterSeq`, default all. */
export async function readEntries(
  { journal, seal }: RunLog,
  runId: string,
  afterSeq?: number,
): Promise<Entry[]> {
  const rows = await journal.readEntries(runId, afterSeq);
  const entries = rows.map((row): Entry => {
    const old = openOldRow(seal, row);
    if (old === undefined) return openEntry(seal, row);
    const { body: _, runId: __, seq: ___, ...rest } = row;
    return { ...rest, ...old, holder: row.runId };
  });
  return upgradeEntries(entries);
}

/** The info of a run. */
export function infoOf({ seal }: RunLog, head: HeadRow): unknown {
  return decodeValue(seal.open(HEAD_PLACES.info(head.id), head.info) as Json);
}

/** Whether a living process may be working on the run. */
export function isHeld(log: RunLog, head: HeadRow): boolean {
  const { processes } = log.machine;
  if (head.owner === null || head.leaseUntilMs === 0) return false;
  // A process of this host that is alive but was busy past its lease is still working.
  if (isOwnerAlive(processes, head.owner)) return true;
  return judgeLease(head, timeOf(log), isOwnerDead(processes, head.owner)) === "held";
}

/**
 * Claims a run without an owner; undefined when it has ended, waits for a human (unless `also` says so), is held, or
 * another process claims it first.
 */
export async function claimRun(
  log: RunLog,
  head: HeadRow,
  also: readonly JournalStatus[] = [],
): Promise<Lease | undefined> {
  if (![...CLAIMABLE, ...also].includes(head.status) || isHeld(log, head)) return undefined;
  const nowMs = timeOf(log);
  const owner = claimName(log.machine);
  const won = await log.journal.swapLease({
    runId: head.id,
    seenEpoch: head.epoch,
    owner,
    leaseUntilMs: nowMs + log.leaseMs,
    nowMs,
  });
  crashPoint("engine.resume.claimed");
  return won ? { runId: head.id, epoch: head.epoch + 1, owner } : undefined;
}

/** Adds a run that waits in its queue for a slot. Throws RUN_ID_TAKEN. */
export async function enqueueRun(log: RunLog, run: NewRun, entries: readonly Entry[]): Promise<void> {
  await insertRun(log, run, entries, { status: "queued", owner: null, epoch: 0, leaseUntilMs: 0 });
}

/** This process and this claim: a claim whose reply was lost is recognized by its name. */
export function claimName(machine: Machine): string {
  return `${ownerName(machine.processes)}#${randomText(machine.ids, 8)}`;
}

/** Writes as the owner. Throws RUN_STALE_LEASE. Returns the number of secrets removed. */
export async function writeRun(log: RunLog, lease: Lease, write: LogWrite): Promise<number> {
  const { journal, seal } = log;
  const { runId, epoch } = lease;
  const sealed = await Promise.all(write.entries.map((entry) => sealEntry(seal, runId, entry)));
  const { head, redactions: inHead } = await sealHead(seal, runId, write.head);
  const redactions = sealed.reduce((sum, each) => sum + each.redactions, inHead);
  const nowMs = timeOf(log);
  const effects = write.entries.flatMap((entry) => (entry.kind === "effect" ? [effectOf(runId, entry)] : []));
  await recordEnds(log, lease, effects);
  if (effects.length > 0) crashPoint("engine.save.ends-in-history");
  const verdict = await journal.write({
    runId,
    epoch,
    seq: write.seq,
    nowMs,
    leaseUntilMs: write.release === true ? 0 : nowMs + log.leaseMs,
    sync: write.sync,
    entries: sealed.map(({ row }) => row),
    waits: write.waits ?? [],
    taken: write.taken ?? [],
    head,
    redactions,
  });
  if (verdict !== "written") throw journalRefusal(verdict, lease, journal.place);
  crashPoint("engine.save.written");
  recordStarts(log, lease, effects);
  return redactions;
}

async function sealHead(seal: Seal, runId: string, head: LogWrite["head"] = {}) {
  const { output, error, ...plain } = head;
  let redactions = 0;
  const text = async (place: string, value: unknown) => {
    const sealed = await seal.seal(place, value);
    redactions += sealed.redactions;
    return sealed.text;
  };
  const sealed: NonNullable<JournalWrite["head"]> = {
    ...plain,
    ...(output == null ? {} : { output: await text(HEAD_PLACES.output(runId), output) }),
    ...(error == null ? {} : { error: await text(HEAD_PLACES.error(runId), error) }),
  };
  return { head: sealed, redactions };
}

/** An effect according to the mission's effect history. */
export function recall(log: RunLog, effect: Effect): Effect {
  return recallEffect(log, effect);
}

/** Answers a wait with a value. */
export async function answerWait(log: RunLog, runId: string, wait: WaitRow, answer: unknown) {
  const { text } = await log.seal.seal(HEAD_PLACES.wait(runId, wait.id), encodeValue(answer, "answer"));
  return log.journal.answer(runId, wait.id, text, timeOf(log));
}

/** The answer to a wait. */
export function openAnswer({ seal }: RunLog, runId: string, wait: WaitRow): unknown {
  if (wait.answer === null) return undefined;
  return decodeValue(seal.open(HEAD_PLACES.wait(runId, wait.id), wait.answer) as Json);
}

/** Puts a message into the inbox of a run. */
export async function sendMessage(
  log: RunLog,
  runId: string,
  message: { id: string; name: string; value: unknown },
) {
  const { id, name, value } = message;
  const { text } = await log.seal.seal(HEAD_PLACES.message(runId, id), encodeValue(value, "message"));
  return log.journal.send(runId, { id, name, body: text, sentMs: timeOf(log) });
}

/** The messages that a run has not taken, oldest first. */
export async function readInbox({ journal, seal }: RunLog, runId: string) {
  return (await journal.readInbox(runId)).map(({ id, name, body }) => ({
    id,
    name,
    value: decodeValue(seal.open(HEAD_PLACES.message(runId, id), body) as Json),
  }));
}
