// Databases in use with several names, or in git's own directory: the content of the log is captured (INV-6).
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { copyDatabase } from "../../src/snapshot/pack/copy-databases.ts";
import { createLab, type Lab } from "./lab.ts";

function openWithLog(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1), (2)");
  return database;
}

function sumIn(lab: Lab, path: string): unknown {
  const file = join(lab.directory, "copy.db");
  fs.writeFileSync(file, Buffer.from(lab.text(path), "latin1"));
  using database = new DatabaseSync(file);
  return database.prepare("SELECT sum(x) AS sum FROM t").get()!["sum"];
}

it("every name of a database gets the content of the log next to one of them", async () => {
  using lab = createLab();
  const file = join(lab.worktree, "m.db");
  using database = openWithLog(file);
  fs.linkSync(file, join(lab.worktree, "a.db"));
  expect((await lab.checkpoint()).flaws).toEqual([]);
  expect(["worktree/m.db", "worktree/a.db"].map((path) => sumIn(lab, path))).toEqual([3, 3]);
  const { listing } = lab.open();
  expect(listing.get("worktree/a.db")?.group).toBe(listing.get("worktree/m.db")!.group);
  database.exec("INSERT INTO t VALUES (4)");
  await lab.checkpoint();
  expect(["worktree/m.db", "worktree/a.db"].map((path) => sumIn(lab, path))).toEqual([7, 7]);
});

it("a log with several names is part of the copy", async () => {
  using lab = createLab();
  const at = (name: string) => join(lab.worktree, name);
  using _ = openWithLog(at("m.db"));
  fs.mkdirSync(at("backup"));
  for (const name of ["m.db", "m.db-wal", "m.db-shm"]) fs.linkSync(at(name), at(`backup/${name}`));
  expect((await lab.checkpoint()).flaws).toEqual([]);
  const names = [...lab.listing().keys()].filter((path) => path.includes("m.db"));
  expect(names.sort()).toEqual(["worktree/backup/m.db", "worktree/m.db"]);
  expect(names.map((path) => sumIn(lab, path))).toEqual([3, 3]);
});

it("a database with a new log is captured although its own file did not change", async () => {
  using lab = createLab();
  const file = join(lab.worktree, "m.db");
  {
    using database = openWithLog(file);
    // Nothing is left to recover when it is opened.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
  fs.linkSync(file, join(lab.worktree, "n.db"));
  await lab.checkpoint();
  using database = new DatabaseSync(file);
  database.exec("INSERT INTO t VALUES (4)");
  await lab.checkpoint();
  expect(["worktree/m.db", "worktree/n.db"].map((path) => sumIn(lab, path))).toEqual([7, 7]);
});

it("a database in git's directory is copied when it is in use", async () => {
  // Excluded from the walk, the log is not seen, as if it were created later.
  using lab = createLab({ document: { snapshot: { exclude: ["*-wal", "*-shm"] } } });
  execFileSync("git", ["-C", lab.worktree, "init", "-q"]);
  using _ = openWithLog(join(lab.worktree, ".git/tool.db"));
  expect((await lab.checkpoint()).flaws).toEqual([]);
  expect(sumIn(lab, "worktree/.git/tool.db")).toBe(3);
});

it("a repeated copy replaces only its own file", async () => {
  using lab = createLab();
  const scratch = fs.mkdtempSync(join(lab.directory, "scratch-"));
  const sources = new Map<string, string>();
  for (const [i, name] of ["one", "one", "two"].entries()) {
    using database = new DatabaseSync(join(lab.worktree, name));
    database.exec(`CREATE TABLE t${i} (x)`);
    const copy = await copyDatabase(lab.cell, `worktree/${name}`, scratch);
    expect(copy.flaw).toBeUndefined();
    sources.set(copy.database, copy.source);
  }
  const tables = [...sources.values()].map((copy) => {
    using database = new DatabaseSync(copy);
    return database.prepare("SELECT group_concat(name) AS names FROM sqlite_schema").get()!["names"];
  });
  expect(tables).toEqual(["t0,t1", "t2"]);
});
