// Every store passes the conformance suite.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createExecutor, openSqliteRunStore } from "../../src/run/index.ts";
import { createMemoryJournal } from "../../src/run/journal/sqlite.ts";
import { RUNS_DATABASE } from "../../src/run/journal/sqlite-migrations.ts";
import { createRunStore } from "../../src/run/store/store.ts";
import { runStoreConformance } from "../../src/testing/run-store-conformance.ts";
import { call, tool } from "./bench.ts";
import { createScriptedModel } from "./scripted-model.ts";

runStoreConformance({ describe, test }, "memory", async () => {
  const journal = createMemoryJournal();
  return { open: async (options) => createRunStore(journal, options), dispose: async () => {} };
});

runStoreConformance({ describe, test }, "SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-runs-"));
  return {
    open: async (options) => openSqliteRunStore(join(directory, "state", "runs.db"), options),
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  };
});

test("a step on SQLite writes the pages of its entries and the run's head", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-runs-"));
  const path = join(directory, "runs.db");
  {
    await using store = openSqliteRunStore(path);
    const walBytes: number[] = [];
    const look = tool("read", () => void walBytes.push(statSync(`${path}-wal`).size));
    const script = [...Array.from({ length: 8 }, () => call("look")), "end"];
    const executor = createExecutor({ model: createScriptedModel(script), store });
    await executor.run({ id: "a", tools: { look } }, "go", { runId: "r" });
    const frameBytes = 24 + RUNS_DATABASE.pageBytes!;
    // The entries, their two indexes, and the head.
    expect((walBytes.at(-1)! - walBytes.at(-5)!) / frameBytes).toBeLessThanOrEqual(4 * 4);
  }
  rmSync(directory, { recursive: true, force: true });
});
