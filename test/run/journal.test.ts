// Every journal passes the conformance suite.
import { describe, test } from "vitest";
import { createMemoryJournal } from "../../src/run/journal/memory.ts";
import { journalConformance } from "../../src/testing/journal-conformance.ts";

journalConformance({ describe, test }, "memory", async () => {
  const journal = createMemoryJournal();
  return { open: async () => journal, dispose: async () => {} };
});
