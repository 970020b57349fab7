// Checkpoints from a dirty set: the same as those of a walk, in time proportional to the changes. `LAZARUS_SEED=<n>` replays a failure.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StatementSync } from "node:sqlite";
import { describe, expect, it, vi } from "vitest";
import { openBaseline } from "../../src/snapshot/capture/baseline.ts";
import { TICK_MS } from "../../src/snapshot/pack/torn.ts";
import { statStoreFile } from "../../src/snapshot/scan/stat-store.ts";
import { SEED } from "../seed.ts";
import { runDirtyProperty } from "./dirty-rounds.ts";
import { asReported, dirtySince, momentOf } from "./dirty-set.ts";
import { createLab, type Lab, listCell, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";
import { canList } from "./real-cell.ts";

const RUNS = 6;
const NOTHING = { paths: new Set<string>(), trees: new Set<string>() };
const dirty = (...paths: string[]) => ({ ...NOTHING, paths: new Set(paths) });

describe.skipIf(!canList())("a checkpoint from a dirty set equals one from a walk", () => {
  it(`in ${RUNS} random cells`, async () => {
    for (let seed = SEED; seed < SEED + RUNS; seed += 1) await runDirtyProperty(seed);
  });

  it("with a worktree in place", async () => {
    await runDirtyProperty(SEED, fs.mkdtempSync(join(tmpdir(), "lazarus-dirty-")));
  });
});

it("only examines the paths in the set", async () => {
  using lab = createLab();
  const at = (name: string) => join(lab.worktree, name);
  for (const name of ["a", "b"]) fs.writeFileSync(at(name), "old");
  await lab.checkpoint();
  for (const name of ["a", "b"]) fs.writeFileSync(at(name), "new content");
  await lab.checkpoint({ dirty: dirty("worktree/a") });
  expect([lab.text("worktree/a"), lab.text("worktree/b")]).toEqual(["new content", "old"]);
  expect((await lab.checkpoint()).outcome).toBe("captured");
  expect(lab.text("worktree/b")).toBe("new content");
});

it.skipIf(!canList()).each([
  ["moved to another name", (at: (name: string) => string) => fs.renameSync(at("d/inner"), at("d/other"))],
  [
    "replaced by another one",
    (at: (name: string) => string) => {
      fs.renameSync(at("d/inner"), at("aside"));
      fs.renameSync(at("empty"), at("d/inner"));
      fs.renameSync(at("aside"), at("empty"));
    },
  ],
  ["moved out of the cell", (at: (name: string) => string) => fs.renameSync(at("d"), at("../../../out"))],
])("finds the other names of a file in a directory that was %s", async (_, change) => {
  using lab = createLab();
  const at = (name: string) => join(lab.worktree, name);
  for (const name of ["d/inner", "empty"]) fs.mkdirSync(at(name), { recursive: true });
  fs.writeFileSync(at("one"), "shared");
  for (const name of ["two", "d/inner/three"]) fs.linkSync(at("one"), at(name));
  const then = momentOf(lab);
  await lab.checkpoint();
  change(at);
  const now = momentOf(lab);
  // The kernel reports neither what was in the directory nor that the file has other names.
  const { paths, trees } = asReported(dirtySince(then, now), then, now);
  const reported = [...paths].filter((path) => !/one|two/.test(path));
  const { ref } = await lab.checkpoint({ dirty: { paths: new Set(reported), trees } });
  expect(listTree(await lab.restored(ref.id))).toEqual(listCell(lab));
});

it("walks the cell without the store of the newest checkpoint, and under other exclude patterns", async () => {
  using lab = createLab();
  const at = (name: string) => join(lab.worktree, name);
  for (const name of ["a", "b"]) fs.writeFileSync(at(name), "old");
  await lab.checkpoint();
  fs.writeFileSync(at("a"), "new");
  fs.rmSync(lab.context.cacheDirectory, { recursive: true });
  await lab.checkpoint({ dirty: NOTHING });
  expect(lab.text("worktree/a")).toBe("new");
  const other = lab.with({ document: { snapshot: { exclude: ["b"] } } });
  await other.checkpoint({ dirty: NOTHING });
  expect([...lab.listing().keys()]).not.toContain("worktree/b");
});

it("updates a store that is behind: only what changed since is hashed", async () => {
  using lab = createLab();
  const at = (name: string) => join(lab.worktree, name);
  for (const name of ["a", "b", "c", "d"]) fs.writeFileSync(at(name), name);
  await lab.checkpoint();
  const file = statStoreFile(lab.context.cacheDirectory);
  const before = fs.readFileSync(file);
  fs.writeFileSync(at("a"), "changed");
  fs.rmSync(at("b"));
  fs.writeFileSync(at("new"), "new");
  const { ref } = await lab.checkpoint();
  fs.rmSync(file);
  fs.writeFileSync(file, before);
  {
    using baseline = openBaseline(lab.context);
    // A directory is also racy when it changed right before a scan.
    const files = baseline.rows.racy().filter((path) => baseline.rows.stat(path)?.type === "file");
    expect(files.sort()).toEqual(["worktree/a", "worktree/new"]);
  }
  fs.writeFileSync(at("a"), "CHANGED");
  fs.writeFileSync(at("c"), "changed too");
  const { checkpoint } = await lab.checkpoint({ dirty: dirty("worktree/a") });
  expect(checkpoint.metadata.parent).toBe(ref.id);
  const directory = await lab.restored(checkpoint.ref.id);
  if (canList()) expect(listTree(directory)).toEqual(listCell(lab));
  expect(checkpoint.metadata.counts).toMatchObject({ files: 4, changed: 2, removed: 0 });
});

it("captures a database in use with its log, although only one of them is in the set", async () => {
  using lab = createLab();
  const file = join(lab.worktree, "data.db");
  const { DatabaseSync } = await import("node:sqlite");
  using database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = wal; CREATE TABLE t (v); INSERT INTO t VALUES (1)");
  await lab.checkpoint();
  for (const [value, name] of [
    [2, "data.db-wal"],
    [3, "data.db"],
    [4, undefined],
  ] as const) {
    database.exec(`INSERT INTO t VALUES (${value})`);
    const { ref, flaws } = await lab.checkpoint({
      dirty: name === undefined ? NOTHING : dirty(`worktree/${name}`),
    });
    expect(flaws).toEqual([]);
    const directory = await lab.restored(ref.id);
    expect(fs.readdirSync(join(directory, "worktree"))).toEqual(["data.db"]);
    using copy = new DatabaseSync(join(directory, "worktree/data.db"), { readOnly: true });
    // A database that was copied while in use is examined every time.
    expect(copy.prepare("SELECT max(v) AS v FROM t").get()).toEqual({ v: value });
  }
});

it("tries again what could not be captured, and names it every time", async () => {
  using lab = createLab();
  const { createServer } = await import("node:net");
  const socket = join(lab.worktree, "s");
  const server = createServer().listen(socket);
  await new Promise((resolve) => server.once("listening", resolve));
  const first = await lab.checkpoint();
  fs.writeFileSync(join(lab.worktree, "a"), "a");
  const second = await lab.checkpoint({ dirty: dirty("worktree/a") });
  expect(first.flaws).toMatchObject([{ path: "worktree/s", kind: "skipped" }]);
  expect(second.flaws).toEqual(first.flaws);
  await new Promise((resolve) => server.close(resolve));
  fs.writeFileSync(socket, "a file now");
  const third = await lab.checkpoint({ dirty: NOTHING });
  expect(third.flaws).toEqual([]);
  expect(lab.text("worktree/s")).toBe("a file now");
});

it("captures what git wrote for the commit of the checkpoint", async () => {
  using lab = createLab();
  const { execFileSync } = await import("node:child_process");
  execFileSync("git", ["init", "-q", lab.worktree]);
  fs.writeFileSync(join(lab.worktree, "a"), "a");
  await lab.checkpoint();
  fs.writeFileSync(join(lab.worktree, "a"), "b");
  const { ref, checkpoint } = await lab.checkpoint({ dirty: dirty("worktree/a") });
  expect(checkpoint.metadata.git.status).toBe("committed");
  const directory = await lab.restored(ref.id);
  if (canList()) expect(listTree(directory)).toEqual(listCell(lab));
  removeTree(directory);
});

const CALLS = ["lstatSync", "statSync", "readdirSync", "openSync"] as const;

/** Runs an operation, and counts its system calls and the rows that SQLite returned. */
async function countWork(operation: () => Promise<unknown>): Promise<{ calls: number; rows: number }> {
  const counts = { calls: 0, rows: 0 };
  const originals = CALLS.map((name) => [name, fs[name]] as const);
  for (const [name, original] of originals)
    Object.assign(fs, {
      [name]: (...args: unknown[]) => {
        counts.calls += 1;
        return (original as (...args: unknown[]) => unknown)(...args);
      },
    });
  const { all } = StatementSync.prototype;
  StatementSync.prototype.all = function (...args: unknown[]) {
    const rows = Reflect.apply(all, this, args);
    counts.rows += rows.length;
    return rows;
  };
  syncBuiltinESMExports();
  try {
    await operation();
    return counts;
  } finally {
    Object.assign(fs, Object.fromEntries(originals));
    StatementSync.prototype.all = all;
    syncBuiltinESMExports();
  }
}

function fill(lab: Lab, directories: number): void {
  for (let i = 0; i < directories; i += 1) {
    const directory = join(lab.worktree, `d${i}`);
    fs.mkdirSync(directory);
    for (const name of ["a", "b", "c"]) fs.writeFileSync(join(directory, name), name);
  }
}

/** A directory that changed right before a scan may have changed during it, and then moves are looked for. */
async function untilOld(path: string): Promise<void> {
  await vi.waitFor(() => expect(Date.now() - fs.statSync(path).ctimeMs).toBeGreaterThan(TICK_MS * 2));
}

it("does the same work in a cell of any size", async () => {
  const work = [];
  for (const directories of [10, 300]) {
    using lab = createLab();
    fill(lab, directories);
    await untilOld(lab.worktree);
    await lab.checkpoint({ git: "deferred" });
    fs.appendFileSync(join(lab.worktree, "d1/a"), "more");
    fs.writeFileSync(join(lab.worktree, "d2/new"), "new");
    fs.rmSync(join(lab.worktree, "d2/b"));
    fs.rmSync(join(lab.worktree, "d3/a"));
    fs.mkdirSync(join(lab.worktree, "d3/a"));
    await untilOld(join(lab.worktree, "d3"));
    const set = ["d1/a", "d2/new", "d2/b", "d2", "d3", "d3/a"].map((name) => join("worktree", name));
    work.push(
      await countWork(() => lab.checkpoint({ git: "deferred", reason: "live", dirty: dirty(...set) })),
    );
    expect(lab.listing().get("worktree/d3/a")).toMatchObject({ type: "directory" });
    expect(lab.listing().has("worktree/d2/b")).toBe(false);
  }
  const [small, large] = work;
  expect(large!.rows).toBe(small!.rows);
  // `/proc` may have more processes now.
  expect(large!.calls).toBeLessThan(small!.calls + 100);
});
