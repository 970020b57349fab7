// Every journal passes the conformance suite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { createGroupCommit } from "../../src/platform/sqlite.ts";
import { createMemoryJournal, openSqliteJournal } from "../../src/run/journal/sqlite.ts";
import { RUNS_DATABASE } from "../../src/run/journal/sqlite-migrations.ts";
import { journalConformance } from "../../src/testing/journal-conformance.ts";
import { headRow, journalWrite } from "../../src/testing/journal-rows.ts";

journalConformance({ describe, test }, "memory", async () => {
  const journal = createMemoryJournal();
  return { open: async () => journal, dispose: async () => {} };
});

journalConformance({ describe, test }, "SQLite", async () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-journal-"));
  return {
    open: async () => openSqliteJournal(systemMachine, join(directory, "runs.db"), RUNS_DATABASE),
    dispose: async () => rmSync(directory, { recursive: true, force: true }),
  };
});

describe("the SQLite journal", () => {
  test("waits for another process's lock without blocking the event loop", async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-journal-"));
    try {
      await using journal = openSqliteJournal(systemMachine, join(directory, "runs.db"), RUNS_DATABASE);
      await journal.insert(headRow("r"), []);
      const other = new DatabaseSync(join(directory, "runs.db"));
      other.exec("BEGIN IMMEDIATE");
      const order: string[] = [];
      const first = journal.write(journalWrite("r", 1, [])).then((verdict) => order.push(verdict));
      const second = journal
        .send("r", { id: "m", name: "go", body: "1", sentMs: 1 })
        .then((v) => order.push(v));
      // The write has been refused at least once when this many turns have passed.
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      expect((await journal.readHead("r"))!.seq).toBe(0);
      order.push("released");
      other.exec("COMMIT");
      other.close();
      await Promise.all([first, second]);
      expect(order).toEqual(["released", "written", "accepted"]);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });

  test("syncs a group that has a full write, and no other", async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-journal-"));
    try {
      using database = new DatabaseSync(join(directory, "some.db"));
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
      const group = createGroupCommit(database);
      const level = () => database.prepare("PRAGMA synchronous").get()!.synchronous;
      const [NORMAL, FULL] = [1, 2];
      expect(await group.run(level, "lazy")).toBe(NORMAL);
      expect(await group.run(level)).toBe(FULL);
      expect(await Promise.all([group.run(level, "lazy"), group.run(level, "full")])).toEqual([FULL, FULL]);
      expect(await Promise.all([group.run(level, "lazy"), group.run(level, "lazy")])).toEqual([
        NORMAL,
        NORMAL,
      ]);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
