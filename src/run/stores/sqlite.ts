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
import type { EffectRow, LineageRow, MessageRow, PhaseRow, RunBackend, RunRow } from "../store/backend.ts";
import { unloadable } from "../store/prune.ts";
import { diagnoseWrite } from "../store/verdict.ts";
import { MESSAGES_PER_RUN, RUNS_DATABASE, SQL } from "./sqlite-schema.ts";

type KeyedRow = RunRow & { readonly key: number };

/** Opens or creates the database at `path` (mode 0600) and migrates it. Refuses a newer or foreign one. */
export function openSqliteBackend(machine: Machine, path: string): RunBackend {
  const database = openDatabase(machine, path, RUNS_DATABASE);
  const statements = new Map<keyof typeof SQL, StatementSync>();
  const sql = (name: keyof typeof SQL): StatementSync => {
    let statement = statements.get(name);
    if (statement === undefined) {
      statement = database.prepare(SQL[name]);
      statements.set(name, statement);
    }
    return statement;
  };
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
  const findRow = (runId: string) => sql("readRun").get(runId) as unknown as KeyedRow | undefined;
  const range = (key: number, fromSeq: number, toSeq: number) => ({
    first: key * MESSAGES_PER_RUN + fromSeq,
    end: key * MESSAGES_PER_RUN + toSeq,
  });
  const insertMessages = (key: number, messages: readonly MessageRow[]) => {
    for (const { seq, step, phase, body } of messages) {
      if (seq >= MESSAGES_PER_RUN)
        throw new LazarusError("RUN_OUT_OF_ORDER", `a run holds at most ${MESSAGES_PER_RUN} messages`);
      sql("insertMessage").run(key * MESSAGES_PER_RUN + seq, step, phase, body);
    }
  };
  const insertPhases = (key: number, phases: readonly PhaseRow[]) => {
    for (const { position, body } of phases) sql("putPhase").run(key, position, body);
  };
  /** The rows of a run and its ancestors that make up its transcript, oldest first. */
  const segments = (runId: string): { key: number; fromSeq: number; toSeq: number }[] => {
    const found: { key: number; fromSeq: number; toSeq: number }[] = [];
    let toSeq = Number.POSITIVE_INFINITY;
    for (let row = findRow(runId); row !== undefined; ) {
      found.unshift({ key: row.key, fromSeq: row.forkSeq, toSeq: Math.min(toSeq, row.seq) });
      toSeq = Math.min(toSeq, row.forkSeq);
      row = row.forkOf === null || row.forkSeq === 0 ? undefined : findRow(row.forkOf);
    }
    return found.filter((segment) => segment.toSeq > segment.fromSeq);
  };

  return {
    kind: "sqlite",
    place: path,
    survives: true,
    insert: (row, messages, phases) =>
      transaction(() => {
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
        const {
          status,
          epoch,
          owner,
          leaseUntilMs,
          seq,
          step,
          phase,
          redactions,
          updatedAtMs,
          output,
          error,
        } = row;
        const { inputTokens, outputTokens } = row;
        sql("insertHead").run({
          key,
          status,
          epoch,
          owner,
          leaseUntilMs,
          seq,
          step,
          phase,
          redactions,
          inputTokens,
          outputTokens,
          updatedAtMs,
          output,
          error,
        });
        insertMessages(key, messages);
        insertPhases(key, phases);
        return true;
      }),
    write: (write) =>
      transaction(() => {
        const { messages, effects, phases, status, ...head } = write;
        const position = { ...head, toSeq: head.fromSeq + messages.length };
        const moved = (
          status === "running" ? sql("moveHead").get(position) : sql("endHead").get({ ...position, status })
        ) as { key: number } | undefined;
        if (moved === undefined) {
          const row = findRow(write.runId);
          const last = messages.at(-1);
          const stored =
            row && last
              ? (sql("readMessages").get(range(row.key, last.seq, last.seq + 1)) as
                  | { body: string }
                  | undefined)
              : undefined;
          return diagnoseWrite(row, write, stored?.body);
        }
        insertMessages(moved.key, messages);
        for (const effect of effects) {
          sql("putEffect").run({ key: moved.key, ...effect, inputRedacted: effect.inputRedacted ? 1 : 0 });
        }
        insertPhases(moved.key, phases);
        crashPoint("run.sqlite.uncommitted");
        return "written";
      }),
    readRun: (runId) => attempt(() => withoutKey(findRow(runId))),
    readMessages: (runId) =>
      attempt(() =>
        segments(runId).flatMap(({ key, fromSeq, toSeq }) => {
          const rows = sql("readMessages").all(range(key, fromSeq, toSeq)) as unknown as (MessageRow & {
            id: number;
          })[];
          return rows.map(({ id, step, phase, body }) => ({
            seq: id - key * MESSAGES_PER_RUN,
            step,
            phase,
            body,
          }));
        }),
      ),
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
    settleEffect: ({ runId, seenEpoch, nowMs, step, call, state, output, error }) =>
      transaction(() => {
        const fenced = sql("fenceSettlement").get({ runId, seenEpoch, nowMs }) as { key: number } | undefined;
        if (fenced === undefined) return false;
        const { key } = fenced;
        sql("settleEffect").run({ key, step, call, state, output, error, nowMs });
        sql("reopenSettled").run({ key });
        return true;
      }),
    prune: (decide) =>
      transaction(() => {
        const plan = decide(sql("listLineage").all() as unknown as LineageRow[]);
        for (const { runId, keepSeq } of plan.stub) stub(sql, runId, keepSeq);
        for (const { runId } of plan.remove) remove(sql, runId);
        for (const { runId, seq } of plan.prove) {
          const found = segments(runId).reduce((sum, { key, fromSeq, toSeq }) => {
            const { n } = sql("countMessages").get(range(key, fromSeq, toSeq)) as { n: number };
            return sum + n;
          }, 0);
          if (found !== seq) throw unloadable(runId, found, seq);
        }
        return plan;
      }),
    sizeBytes: () => attempt(() => sizeOf(path) + sizeOf(`${path}-wal`)),
    async [Symbol.asyncDispose]() {
      close(database);
    },
  };
}

type Statements = (name: keyof typeof SQL) => StatementSync;

function stub(sql: Statements, runId: string, keepSeq: number): void {
  const { key } = sql("findKey").get(runId) as { key: number };
  sql("removeMessages").run({ first: key * MESSAGES_PER_RUN + keepSeq, end: (key + 1) * MESSAGES_PER_RUN });
  sql("removeEffects").run(key);
  sql("removePhases").run(key);
  sql("makeStub").run(key);
}

function remove(sql: Statements, runId: string): void {
  const found = sql("findKey").get(runId) as { key: number } | undefined;
  if (found === undefined) return;
  const { key } = found;
  sql("removeMessages").run({ first: key * MESSAGES_PER_RUN, end: (key + 1) * MESSAGES_PER_RUN });
  for (const table of ["removeEffects", "removePhases", "removeHead", "removeRun"] as const)
    sql(table).run(key);
}

function withoutKey(row: KeyedRow | undefined): RunRow | undefined {
  if (row === undefined) return undefined;
  const { key: _, ...rest } = row;
  return rest;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function close(database: DatabaseSync): void {
  if (database.isOpen) database.close();
}
