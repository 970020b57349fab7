// A copy of another program's database leaves out what must not be copied.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemDisk } from "../../platform/disk.ts";
import { copyDatabaseWithout } from "./copy-database.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-copy-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

it("copies everything but the rows of some tables, even from a database in use", () => {
  const from = join(directory, "user.db");
  const to = join(directory, "own.db");
  using owner = new DatabaseSync(from);
  owner.exec(
    "PRAGMA journal_mode = WAL; CREATE TABLE session (id TEXT); CREATE TABLE credential (value TEXT)",
  );
  owner.exec("INSERT INTO session VALUES ('ses_1'); INSERT INTO credential VALUES ('hunter2-hunter2')");
  expect(copyDatabaseWithout({ disk: systemDisk }, from, to, ["credential", "absent"])).toBe(true);
  using copy = new DatabaseSync(to);
  expect(copy.prepare("SELECT id FROM session").all()).toEqual([{ id: "ses_1" }]);
  expect(copy.prepare("SELECT * FROM credential").all()).toEqual([]);
  expect(readFileSync(to).includes("hunter2")).toBe(false);
  expect(owner.prepare("SELECT count(*) AS n FROM credential").get()).toEqual({ n: 1 });
});

it("returns false when there is no database", () => {
  expect(copyDatabaseWithout({ disk: systemDisk }, join(directory, "a"), join(directory, "b"), [])).toBe(
    false,
  );
  expect(existsSync(join(directory, "b"))).toBe(false);
});
