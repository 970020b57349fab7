// Every store passes the exported suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import { createRunStore } from "../../src/run/run-store.ts";
import { createMemoryBackend } from "../../src/run/stores/memory.ts";
import { openSqliteBackend } from "../../src/run/stores/sqlite.ts";
import { runStoreConformance } from "../../src/testing/run-store-conformance.ts";

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
