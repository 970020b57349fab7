// Databases in use: every checkpoint restores to a consistent database without partial transactions.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { startChild } from "./child.ts";
import { createLab, type Lab } from "./lab.ts";
import { listTree } from "./list-tree.ts";

/** Restores only the database, checks it, and returns how many transactions it holds. */
async function transactions(lab: Lab, id: string, journal: string): Promise<number> {
  const names = [...lab.listing(id).keys()].filter((path) => path.includes("busy"));
  expect(names, `sidecars are not captured (${journal})`).toEqual(["state/busy.db"]);
  const file = join(lab.directory, `${id}.db`);
  fs.writeFileSync(file, Buffer.from(lab.text("state/busy.db", id), "latin1"));
  const database = new DatabaseSync(file);
  try {
    expect(database.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    const { n } = database.prepare("SELECT n FROM counter").get() as { n: number };
    const rows = database.prepare("SELECT count(*) AS n, max(n) AS last FROM pair").get() as {
      n: number;
      last: number | null;
    };
    expect(rows.n % 2).toBe(0);
    expect(rows.last ?? 0).toBe(n);
    return n;
  } finally {
    database.close();
    fs.rmSync(file);
  }
}

describe("a database with a busy writer", () => {
  for (const [journal, rounds] of [
    ["WAL", 20],
    ["DELETE", 10],
    ["TRUNCATE", 10],
    ["PERSIST", 10],
  ] as const) {
    it(`is consistent in each of ${rounds} checkpoints, in journal mode ${journal}`, async () => {
      using lab = createLab({ document: { retention: { auto: false } } });
      fs.mkdirSync(join(lab.cell, "state"));
      const file = join(lab.cell, "state/busy.db");
      const ids: string[] = [];
      {
        await using _writer = await startChild("busy-database.ts", file, journal);
        let first: number | undefined;
        let last = 0;
        // Wait until the writer makes progress: the checkpoint must be taken while it writes.
        for (let i = 0; i < rounds || last === first; i += 1) {
          const { ref, flaws } = await lab.checkpoint();
          expect(flaws.filter(({ path }) => path.endsWith("busy.db"))).toEqual([]);
          ids.push(ref.id);
          if (first === undefined || i >= rounds - 1) last = await transactions(lab, ref.id, journal);
          first ??= last;
        }
      }
      const counts: number[] = [];
      for (const id of ids) counts.push(await transactions(lab, id, journal));
      expect([...counts].sort((a, b) => a - b)).toEqual(counts);
      expect(counts.at(-1)).toBeGreaterThan(counts[0]!);
      await lab.verify();
    });
  }

  // A journal in memory is like one that existed only briefly: no file shows that a transaction is active.
  it.each([
    ["small", 0],
    ["large", 3 << 20],
  ])("is copied through SQLite when it changes during the capture, %s", async (_, ballast) => {
    using lab = createLab({ document: { retention: { auto: false } } });
    fs.mkdirSync(join(lab.cell, "state"));
    const file = join(lab.cell, "state/busy.db");
    await using _writer = await startChild("busy-database.ts", file, "MEMORY", String(ballast));
    for (let i = 0; i < 5; i += 1) expect((await lab.checkpoint()).flaws).toEqual([]);
    await lab.verify();
  });

  it("is not modified: neither its file nor its log is written", async () => {
    using lab = createLab();
    const file = join(lab.worktree, "a.db");
    const database = new DatabaseSync(file);
    database.exec(
      "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (x); INSERT INTO t VALUES (1)",
    );
    const before = listTree(lab.worktree).filter((line) => !line.includes("-shm"));
    const first = await lab.checkpoint();
    expect(listTree(lab.worktree).filter((line) => !line.includes("-shm"))).toEqual(before);
    expect(first.flaws).toEqual([]);
    expect(first.checkpoint.metadata.counts.files).toBe(1);
    const second = await lab.checkpoint();
    expect(second.outcome).toBe("unchanged");
    // Only the log grows; the stat of the database file does not change.
    database.exec("INSERT INTO t VALUES (2)");
    expect((await lab.checkpoint()).outcome).toBe("captured");
    expect(fs.readdirSync(lab.context.vault.scratch), "copies are not left behind").toEqual([]);
    // Closed: SQLite checkpoints the log into the database.
    database.close();
    expect((await lab.checkpoint()).outcome).toBe("captured");
    expect(lab.text("worktree/a.db")).toBe(fs.readFileSync(file, "latin1"));
  });

  it("that was captured with its log is captured again when the log is gone", async () => {
    using lab = createLab();
    const file = join(lab.worktree, "a.db");
    const database = new DatabaseSync(file);
    database.exec(
      "PRAGMA journal_mode = WAL; CREATE TABLE t (x); PRAGMA wal_checkpoint(TRUNCATE); INSERT INTO t VALUES (1)",
    );
    await lab.checkpoint();
    const bytes = fs.readFileSync(file, "latin1");
    for (const name of ["a.db-wal", "a.db-shm"]) fs.rmSync(join(lab.worktree, name));
    await lab.checkpoint();
    expect(lab.text("worktree/a.db")).toBe(bytes);
    database.close();
  });
});

describe("a database that SQLite cannot copy is captured as plain files and reported", () => {
  it("when its writer was killed in a transaction", async () => {
    using lab = createLab();
    const file = join(lab.worktree, "a.db");
    const script = `const db = new (require("node:sqlite").DatabaseSync)(${JSON.stringify(file)});
      db.exec("PRAGMA cache_size = 2; CREATE TABLE t (x); INSERT INTO t VALUES ('kept'); BEGIN");
      for (let i = 0; i < 500; i += 1) db.exec("INSERT INTO t VALUES (hex(randomblob(500)))");
      process.kill(process.pid, "SIGKILL")`;
    spawnSync(process.execPath, ["-e", script]);
    const { flaws, ref } = await lab.checkpoint();
    expect(flaws).toEqual([
      {
        path: "worktree/a.db",
        kind: "degraded",
        reason:
          "SQLite could not copy it (its last transaction was interrupted, and SQLite will roll it back from the journal); captured as plain files",
      },
    ]);
    const restored = new DatabaseSync(join(await lab.restored(ref.id), "worktree/a.db"));
    expect(restored.prepare("SELECT x FROM t").all()).toEqual([{ x: "kept" }]);
    restored.close();
    const again = await lab.checkpoint();
    expect(again).toMatchObject({ outcome: "unchanged", flaws });
  });

  it("when it is damaged", async () => {
    using lab = createLab();
    fs.writeFileSync(
      join(lab.worktree, "a.db"),
      Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(5000, 7)]),
    );
    fs.writeFileSync(join(lab.worktree, "a.db-wal"), "no log at all");
    const { flaws } = await lab.checkpoint();
    expect(flaws).toEqual([expect.objectContaining({ path: "worktree/a.db", kind: "degraded" })]);
    expect(lab.text("worktree/a.db-wal")).toBe("no log at all");
  });

  it("when another process keeps it locked", async () => {
    using lab = createLab();
    const database = new DatabaseSync(join(lab.worktree, "a.db"));
    database.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1); BEGIN EXCLUSIVE; INSERT INTO t VALUES (2)");
    const { flaws } = await lab.checkpoint();
    expect(flaws).toEqual([
      {
        path: "worktree/a.db",
        kind: "degraded",
        reason: "SQLite could not copy it (it stayed locked for 5 s); captured as plain files",
      },
    ]);
    expect([...lab.listing().keys()]).toContain("worktree/a.db-journal");
    database.close();
  });
});
