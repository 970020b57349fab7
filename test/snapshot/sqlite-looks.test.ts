// A database whose writer begins a transaction while SQLite looks at it: told apart from one whose writer is gone.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { backupDatabase } from "../../src/snapshot/pack/sqlite-backup.ts";

vi.mock("node:sqlite", async (original) => {
  const sqlite = await original<typeof import("node:sqlite")>();
  return { ...sqlite, backup: vi.fn(sqlite.backup) };
});

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-looks-"));
  using database = new DatabaseSync(join(directory, "a.db"));
  database.exec("CREATE TABLE t (x); INSERT INTO t VALUES ('kept')");
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

/** What SQLite says of a journal whose transaction it would have to undo. */
const cutOff = () =>
  Promise.reject(Object.assign(new Error("attempt to write a readonly database"), { errcode: 776 }));
const copy = () => backupDatabase(join(directory, "a.db"), join(directory, "copy"));

it("is copied when the journal turns out to belong to someone at work", async () => {
  vi.mocked(backup).mockImplementationOnce(cutOff).mockImplementationOnce(cutOff);
  expect(await copy()).toBeUndefined();
  using database = new DatabaseSync(join(directory, "copy"));
  expect(database.prepare("SELECT x FROM t").all()).toEqual([{ x: "kept" }]);
});

it("is not copied when the journal looks left behind each time", async () => {
  vi.mocked(backup).mockImplementation(cutOff);
  expect(await copy()).toContain("its last transaction was cut off");
  expect(fs.readdirSync(directory)).toEqual(["a.db"]);
});
