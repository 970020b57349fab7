// Runs in one SQLite file: the default, and part of a cell's checkpoints. Every write is one immediate transaction that
// checks the lease's epoch first (INV-4) and is on disk when it returns (INV-1). Stores text without interpreting it.
import { statSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import {
  createGroupCommit,
  type DatabaseSync,
  databaseError,
  openDatabase,
  type StatementSync,
} from "../../platform/sqlite.ts";
import type {
  EffectChange,
  EffectRow,
  LineageRow,
  MessageRow,
  PhaseRow,
  PrunePlan,
  RunBackend,
  RunRow,
  StepWrite,
  WriteVerdict,
} from "../store/backend.ts";
import { unloadable } from "../store/prune.ts";
import { diagnoseWrite } from "../store/verdict.ts";
import { MESSAGES_PER_RUN, RUNS_DATABASE, SQL } from "./sqlite-schema.ts";

type KeyedRow = RunRow & { readonly key: number };
type Statements = (name: keyof typeof SQL) => StatementSync;

/** The messages of one run that belong to a transcript. */
interface Segment {
  readonly key: number;
  readonly fromSeq: number;
  readonly toSeq: number;
}

/** Opens or creates the database at `path` (mode 0600) and migrates it. Refuses a newer or foreign one. */
export function openSqliteBackend(machine: Machine, path: string): RunBackend {
  const database = openDatabase(machine, path, RUNS_DATABASE);
  const sql = prepareOnce(database);
  /** Converts SQLite errors such as a full disk or a damaged file. */
  const attempt = async <T>(work: () => T | Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw databaseError(error, path, RUNS_DATABASE);
    }
  };
  const group = createGroupCommit(database);
  const transaction = <T>(work: () => T): Promise<T> => attempt(() => group.run(work));
  return {
    kind: "sqlite",
    place: path,
    survives: true,
    insert: (row, messages, phases) => transaction(() => insertRun(sql, row, messages, phases)),
    write: (write) => transaction(() => writeStep(sql, write)),
    readRun: (runId) => attempt(() => withoutKey(findRow(sql, runId))),
    readMessages: (runId) =>
      attempt(() => findSegments(sql, runId).flatMap((each) => readSegment(sql, each))),
    readEffects: (runId) =>
      attempt(() => {
        const rows = sql("readEffects").all(runId) as unknown as EffectRow[];
        return rows.map((row) => ({ ...row, inputRedacted: Boolean(row.inputRedacted) }));
      }),
    readPhases: (runId) => attempt(() => sql("readPhases").all(runId) as unknown as PhaseRow[]),
    listRuns: ({ statuses, agentId, limit }) =>
      attempt(() => {
        const rows = sql("listRuns").all({
          statuses: statuses === undefined ? null : JSON.stringify(statuses),
          agentId: agentId ?? null,
          limit: limit ?? -1,
        });
        return rows as unknown as RunRow[];
      }),
    swapLease: (swap) => transaction(() => sql("swapLease").run({ ...swap }).changes === 1),
    renewLease: (runId, epoch, leaseUntilMs) =>
      transaction(() => sql("renewLease").run({ runId, epoch, leaseUntilMs }).changes === 1),
    releaseLease: (runId, epoch) =>
      transaction(() => sql("releaseLease").run({ runId, epoch }).changes === 1),
    settleEffect: (change) => transaction(() => settleEffect(sql, change)),
    prune: (decide) =>
      transaction(() => {
        const plan = decide(sql("listLineage").all() as unknown as LineageRow[]);
        applyPrune(sql, plan);
        return plan;
      }),
    sizeBytes: () => attempt(() => sizeOf(path) + sizeOf(`${path}-wal`)),
    async [Symbol.asyncDispose]() {
      if (database.isOpen) database.close();
    },
  };
}

/** Prepares each statement on first use. */
function prepareOnce(database: DatabaseSync): Statements {
  const statements = new Map<keyof typeof SQL, StatementSync>();
  return (name) => {
    let statement = statements.get(name);
    if (statement === undefined) {
      statement = database.prepare(SQL[name]);
      statements.set(name, statement);
    }
    return statement;
  };
}

function insertRun(
  sql: Statements,
  row: RunRow,
  messages: readonly MessageRow[],
  phases: readonly PhaseRow[],
): boolean {
  const { id, agentId, parentRunId, forkOf, forkSeq, forkStep, format, createdAtMs, info } = row;
  const inserted = sql("insertRun").get({
    id,
    agentId,
    parentRunId,
    forkOf,
    forkSeq,
    forkStep,
    format,
    createdAtMs,
    info,
  }) as { key: number } | undefined;
  if (inserted === undefined) return false;
  const { key } = inserted;
  const { status, epoch, owner, leaseUntilMs, seq, step, phase, redactions, updatedAtMs, output, error } =
    row;
  const { inputTokens, outputTokens } = row;
  const lease = { key, status, epoch, owner, leaseUntilMs };
  const position = { seq, step, phase, redactions, inputTokens, outputTokens };
  sql("insertHead").run({ ...lease, ...position, updatedAtMs, output, error });
  insertMessages(sql, key, messages);
  insertPhases(sql, key, phases);
  return true;
}

function writeStep(sql: Statements, write: StepWrite): WriteVerdict {
  const { messages, effects, phases, status, ...head } = write;
  const position = { ...head, toSeq: head.fromSeq + messages.length };
  const moved = (
    status === "running" ? sql("moveHead").get(position) : sql("endHead").get({ ...position, status })
  ) as { key: number } | undefined;
  if (moved === undefined) return diagnoseWrite(findRow(sql, write.runId), write, storedBody(sql, write));
  insertMessages(sql, moved.key, messages);
  for (const effect of effects) {
    sql("putEffect").run({ key: moved.key, ...effect, inputRedacted: effect.inputRedacted ? 1 : 0 });
  }
  insertPhases(sql, moved.key, phases);
  crashPoint("run.sqlite.uncommitted");
  return "written";
}

/** The stored body at the position of the last message of a write. */
function storedBody(sql: Statements, { runId, messages }: StepWrite): string | undefined {
  const row = findRow(sql, runId);
  const last = messages.at(-1);
  if (row === undefined || last === undefined) return undefined;
  const range = idRange({ key: row.key, fromSeq: last.seq, toSeq: last.seq + 1 });
  return (sql("readMessages").get(range) as { body: string } | undefined)?.body;
}

function settleEffect(
  sql: Statements,
  { runId, seenEpoch, nowMs, step, call, state, output, error }: EffectChange,
): boolean {
  const fenced = sql("fenceSettlement").get({ runId, seenEpoch, nowMs }) as { key: number } | undefined;
  if (fenced === undefined) return false;
  const { key } = fenced;
  sql("settleEffect").run({ key, step, call, state, output, error, nowMs });
  sql("reopenSettled").run({ key });
  return true;
}

function applyPrune(sql: Statements, plan: PrunePlan): void {
  for (const { runId, keepSeq } of plan.stub) reduceToStub(sql, runId, keepSeq);
  for (const { runId } of plan.remove) removeRun(sql, runId);
  for (const { runId, seq } of plan.prove) {
    const found = findSegments(sql, runId).reduce((sum, segment) => {
      const { n } = sql("countMessages").get(idRange(segment)) as { n: number };
      return sum + n;
    }, 0);
    if (found !== seq) throw unloadable(runId, found, seq);
  }
}

function reduceToStub(sql: Statements, runId: string, keepSeq: number): void {
  const { key } = sql("findKey").get(runId) as { key: number };
  sql("removeMessages").run(idRange({ key, fromSeq: keepSeq, toSeq: MESSAGES_PER_RUN }));
  sql("removeEffects").run(key);
  sql("removePhases").run(key);
  sql("makeStub").run(key);
}

function removeRun(sql: Statements, runId: string): void {
  const found = sql("findKey").get(runId) as { key: number } | undefined;
  if (found === undefined) return;
  const { key } = found;
  sql("removeMessages").run(idRange({ key, fromSeq: 0, toSeq: MESSAGES_PER_RUN }));
  for (const table of ["removeEffects", "removePhases", "removeHead", "removeRun"] as const)
    sql(table).run(key);
}

function findRow(sql: Statements, runId: string): KeyedRow | undefined {
  return sql("readRun").get(runId) as unknown as KeyedRow | undefined;
}

/** The rows of a run and its ancestors that make up its transcript, oldest first. */
function findSegments(sql: Statements, runId: string): Segment[] {
  const found: Segment[] = [];
  let toSeq = Number.POSITIVE_INFINITY;
  for (let row = findRow(sql, runId); row !== undefined; ) {
    found.unshift({ key: row.key, fromSeq: row.forkSeq, toSeq: Math.min(toSeq, row.seq) });
    toSeq = Math.min(toSeq, row.forkSeq);
    row = row.forkOf === null || row.forkSeq === 0 ? undefined : findRow(sql, row.forkOf);
  }
  return found.filter((segment) => segment.toSeq > segment.fromSeq);
}

function readSegment(sql: Statements, segment: Segment): MessageRow[] {
  const rows = sql("readMessages").all(idRange(segment)) as unknown as (MessageRow & { id: number })[];
  const first = segment.key * MESSAGES_PER_RUN;
  return rows.map(({ id, step, phase, body }) => ({ seq: id - first, step, phase, body }));
}

function idRange({ key, fromSeq, toSeq }: Segment): { first: number; end: number } {
  return { first: key * MESSAGES_PER_RUN + fromSeq, end: key * MESSAGES_PER_RUN + toSeq };
}

function insertMessages(sql: Statements, key: number, messages: readonly MessageRow[]): void {
  for (const { seq, step, phase, body } of messages) {
    if (seq >= MESSAGES_PER_RUN)
      throw new LazarusError("RUN_OUT_OF_ORDER", `a run holds at most ${MESSAGES_PER_RUN} messages`);
    sql("insertMessage").run(key * MESSAGES_PER_RUN + seq, step, phase, body);
  }
}

function insertPhases(sql: Statements, key: number, phases: readonly PhaseRow[]): void {
  for (const { position, body } of phases) sql("putPhase").run(key, position, body);
}

function withoutKey(row: KeyedRow | undefined): RunRow | undefined {
  if (row === undefined) return undefined;
  const { key: _, ...rest } = row;
  return rest;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
