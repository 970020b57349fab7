// Every store passes the conformance suite.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import type { RunRow } from "../../src/run/store/backend.ts";
import { planPrune } from "../../src/run/store/retention.ts";
import { createRunStore } from "../../src/run/store/run-store.ts";
import { createMemoryBackend } from "../../src/run/stores/memory.ts";
import { openPostgresBackend } from "../../src/run/stores/postgres.ts";
import { openSqliteBackend } from "../../src/run/stores/sqlite.ts";
import { RUNS_DATABASE } from "../../src/run/stores/sqlite-schema.ts";
import { runStoreConformance } from "../../src/testing/run-store-conformance.ts";
import { startPostgres } from "./postgres-server.ts";

runStoreConformance({ describe, test }, "memory", async () => {
  const backend = createMemoryBackend();
  return { open: async (options) => createRunStore(backend, options), dispose: async () => {} };
});

runStoreConformance({ describe, test }, "SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-runs-"));
  return {
    open: async (options) =>
      createRunStore(openSqliteBackend(options.machine!, join(directory, "state", "runs.db")), options),
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  };
});

test.each(["memory", "SQLite", "PostgreSQL"])(
  "%s refuses a fork of a run that is gone or too short",
  async (kind) => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-runs-"));
    await using server = kind === "PostgreSQL" ? await startPostgres() : undefined;
    await using backend =
      server !== undefined
        ? await openPostgresBackend(systemMachine, await server.createDatabase())
        : kind === "SQLite"
          ? openSqliteBackend(systemMachine, join(directory, "runs.db"))
          : createMemoryBackend();
    const row = (id: string, forkOf: string | null, forkSeq: number): RunRow => ({
      ...{
        id,
        forkOf,
        forkSeq,
        forkStep: null,
        agentId: "a",
        parentRunId: forkOf,
        status: "running",
        epoch: 0,
      },
      ...{
        owner: null,
        leaseUntilMs: 0,
        deaths: 0,
        seq: 1,
        step: 0,
        phase: 0,
        info: "{}",
        output: null,
        error: null,
      },
      ...{ redactions: 0, inputTokens: 0, outputTokens: 0, format: 1, createdAtMs: 1, updatedAtMs: 1 },
    });
    const message = { seq: 0, step: 0, phase: 0, body: "{}" };
    expect(await backend.insert(row("early", "above", 1), [], [])).toBe(false);
    expect(await backend.insert(row("above", null, 0), [message], [])).toBe(true);
    expect(await backend.insert(row("too long", "above", 2), [], [])).toBe(false);
    expect(await backend.insert(row("kept", "above", 1), [], [])).toBe(true);
    await backend.prune((lineage) => planPrune(lineage, new Set(["above"])));
    expect((await backend.readRun("above"))?.status).toBe("stub");
    expect(await backend.insert(row("late", "above", 1), [], [])).toBe(false);
    expect(await backend.readMessages("kept")).toEqual([message]);
    rmSync(directory, { recursive: true, force: true });
  },
);

test("a step on SQLite writes two pages, one for the message and one for the run's head", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-runs-"));
  const path = join(directory, "runs.db");
  {
    await using backend = openSqliteBackend(systemMachine, path);
    const store = createRunStore(backend);
    const lease = await store.begin({ ...INFO, runId: "r" }, []);
    const walBytes: number[] = [];
    for (let step = 0; step < 5; step += 1) {
      await store.save(lease, {
        ...{ fromCount: step, messages: [{ step, phase: 0, message: { role: "user", content: "go" } }] },
        ...{ step, phase: 0, usage: { inputTokens: step, outputTokens: step } },
      });
      walBytes.push(statSync(`${path}-wal`).size);
    }
    const frameBytes = 24 + RUNS_DATABASE.pageBytes!;
    expect((walBytes.at(-1)! - walBytes[0]!) / frameBytes).toBe(4 * 2);
  }
  rmSync(directory, { recursive: true, force: true });
});

const INFO = {
  ...{ agentId: "a", agentName: "a", callerId: null, channelId: null, guildId: null, parentRunId: null },
  ...{ prompt: "go", modelTier: null, inputs: null, startedAtMs: 0, maxIterations: 1 },
};
