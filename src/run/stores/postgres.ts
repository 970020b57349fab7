// Runs in PostgreSQL, for many hosts. Every save is one statement and one commit, which also checks the epoch (INV-4).
// While the server is unreachable, calls wait and retry; a repeated write is applied once.
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { openPostgresPool, type PostgresOptions, type PostgresPool } from "../../platform/postgres.ts";
import { openPostgresJournal } from "../journal/postgres.ts";
import type { EffectRow, LineageRow, MessageRow, PhaseRow, RunBackend, RunRow } from "../store/backend.ts";
import { changedMeanwhile, unloadable } from "../store/prune.ts";
import { createRunStore, type RunStoreOptions } from "../store/run-store.ts";
import type { RunStore } from "../store/store.ts";
import { diagnoseWrite } from "../store/verdict.ts";
import { PG_MIGRATIONS, PG_SQL } from "./postgres-schema.ts";

/** The tables of runs, for everything that opens them. */
export const RUN_TABLES = { what: "the run store", component: "run", migrations: PG_MIGRATIONS };

/** Opens a store in the database at `connection` (postgres://…). */
export async function openPostgresRunStore(
  connection: string,
  options: RunStoreOptions & PostgresOptions = {},
): Promise<RunStore> {
  const machine = options.machine ?? systemMachine;
  const backend = await openPostgresBackend(machine, connection, options);
  const journal = await openPostgresJournal(machine, connection, RUN_TABLES, options);
  const store = createRunStore(backend, options, undefined, () => journal);
  // Opened now, so that it is closed with the store.
  void store.log;
  return store;
}

/** Opens only the backend. */
export async function openPostgresBackend(
  machine: Machine,
  connection: string,
  options: PostgresOptions = {},
): Promise<RunBackend> {
  const pool = await openPostgresPool(machine.clock, connection, RUN_TABLES, options);
  const query = <Row extends object>(name: keyof typeof PG_SQL, ...values: readonly unknown[]) =>
    pool.query<Row>(name, PG_SQL[name], values);
  const readRun = async (runId: string) => (await query<RunRow>("readRun", runId)).rows[0];

  return {
    kind: "postgres",
    place: pool.place,
    survives: true,
    async insert(row, messages, phases) {
      const { rows, repeated } = await query(
        "insert",
        ...[
          row.id,
          row.agentId,
          row.parentRunId,
          row.forkOf,
          row.forkSeq,
          row.forkStep,
          row.format,
          row.createdAtMs,
        ],
        ...[row.info, row.status, row.epoch, row.owner, row.leaseUntilMs, row.seq, row.step, row.phase],
        ...[row.redactions, row.inputTokens, row.outputTokens, row.updatedAtMs, row.output, row.error],
        ...[messages.map(({ seq }) => seq), messages.map(({ step }) => step)],
        ...[messages.map(({ phase }) => phase), messages.map(({ body }) => body)],
        ...[phases.map(({ position }) => position), phases.map(({ body }) => body)],
      );
      if (rows.length > 0 || !repeated) return rows.length > 0;
      // The server may have stopped between the commit and its reply.
      const found = await readRun(row.id);
      return found?.owner === row.owner && found.createdAtMs === row.createdAtMs && found.info === row.info;
    },
    async write(write) {
      const { messages, effects, phases } = write;
      const isPlain = effects.length + phases.length === 0;
      const { rows } = await query(
        isPlain ? "writeMessages" : "write",
        ...[
          write.runId,
          write.epoch,
          write.fromSeq,
          write.step,
          write.phase,
          write.status,
          write.leaseUntilMs,
        ],
        ...[write.redactions, write.inputTokens, write.outputTokens, write.nowMs, write.output, write.error],
        ...[messages.map(({ seq }) => seq), messages.map(({ step }) => step)],
        ...[messages.map(({ phase }) => phase), messages.map(({ body }) => body)],
        ...(isPlain
          ? []
          : [
              JSON.stringify(effects),
              phases.map(({ position }) => position),
              phases.map(({ body }) => body),
            ]),
      );
      if (rows.length > 0) return "written";
      const last = messages.at(-1);
      const stored = last && (await query<{ body: string }>("readBody", write.runId, last.seq)).rows[0];
      return diagnoseWrite(await readRun(write.runId), write, stored?.body);
    },
    readRun,
    readMessages: async (runId) => (await query<MessageRow>("readMessages", runId)).rows,
    readEffects: async (runId) => (await query<EffectRow>("readEffects", runId)).rows,
    readPhases: async (runId) => (await query<PhaseRow>("readPhases", runId)).rows,
    listRuns: async ({ statuses, agentId, limit }) =>
      (await query<RunRow>("listRuns", statuses ?? null, agentId ?? null, limit ?? null)).rows,
    swapLease: async ({ runId, seenEpoch, owner, leaseUntilMs, nowMs }) =>
      (await query("swapLease", runId, seenEpoch, owner, leaseUntilMs, nowMs)).count === 1,
    renewLease: async (runId, epoch, leaseUntilMs) =>
      (await query("renewLease", runId, epoch, leaseUntilMs)).count === 1,
    releaseLease: async (runId, epoch) => (await query("releaseLease", runId, epoch)).count === 1,
    settleEffect: async ({ runId, seenEpoch, step, call, state, output, error, nowMs }) =>
      (await query("settleEffect", runId, seenEpoch, step, call, state, output, error, nowMs)).count === 1,
    prune: (decide) => pruneRuns(pool, decide),
    sizeBytes: async () => (await query<{ n: number }>("sizeBytes", pool.schema)).rows[0]!.n,
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

function pruneRuns(pool: PostgresPool, decide: Parameters<RunBackend["prune"]>[0]) {
  return pool.inTransaction(async (client) => {
    const run = (name: keyof typeof PG_SQL, ...values: readonly unknown[]) =>
      client.query(PG_SQL[name].replaceAll("%.", `${pool.schema}.`), [...values]);
    await run("lockRuns");
    const plan = decide((await run("listLineage")).rows as LineageRow[]);
    for (const { runId, keepSeq, epoch } of plan.stub) {
      if ((await run("stub", runId, keepSeq, epoch)).rowCount !== 1) throw changedMeanwhile(runId, "pruned");
    }
    for (const { runId, epoch } of plan.remove) {
      if ((await run("removeContent", runId, epoch)).rowCount !== 1) throw changedMeanwhile(runId, "pruned");
      await run("removeRun", runId);
    }
    for (const { runId, seq } of plan.prove) {
      const found: number = (await run("countMessages", runId)).rows[0].n;
      if (found !== seq) throw unloadable(runId, found, seq);
    }
    return plan;
  });
}
