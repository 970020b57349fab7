// Copying a database with a rollback journal: a transaction that starts while SQLite opens the database looks like one
// whose writer died.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { backupDatabase } from "../../src/snapshot/pack/sqlite-backup.ts";

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-journal-"));
  using database = new DatabaseSync(join(directory, "a.db"));
  database.exec("CREATE TABLE t (x); INSERT INTO t VALUES ('kept')");
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

/** How SQLite refuses a journal whose transaction it would have to roll back. */
const refused = () =>
  Promise.reject(Object.assign(new Error("attempt to write a readonly database"), { errcode: 776 }));

it("is copied when the journal belongs to a running transaction", async () => {
  const copyPages = vi.fn(backup).mockImplementationOnce(refused).mockImplementationOnce(refused);
  const copy = join(directory, "copy");
  expect(await backupDatabase(join(directory, "a.db"), copy, { backup: copyPages })).toBeUndefined();
  using database = new DatabaseSync(copy);
  expect(database.prepare("SELECT x FROM t").all()).toEqual([{ x: "kept" }]);
});

it("is not copied when every attempt finds a journal to roll back", async () => {
  const reason = await backupDatabase(join(directory, "a.db"), join(directory, "copy"), { backup: refused });
  expect(reason).toContain("its last transaction was interrupted");
  expect(fs.readdirSync(directory)).toEqual(["a.db"]);
});
