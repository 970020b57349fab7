// The first checkpoint of a cell: secrets, files with several names, databases in use and git's own directory each end up
// in the right layer, and failures while storing leave nothing behind.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { isLocalOnly } from "../../src/snapshot/vault/codec.ts";
import { openLayerOf } from "../../src/snapshot/vault/manifest.ts";
import { createFaultyDisk } from "../../src/testing/index.ts";
import { createLab, type Lab } from "./lab.ts";
import { listTree } from "./list-tree.ts";

const DIRECTORIES = 100;
const FILES = 5;

function fill(lab: Lab): void {
  for (let d = 0; d < DIRECTORIES; d += 1) {
    const directory = join(lab.worktree, `d${d}`, "deep");
    fs.mkdirSync(directory, { recursive: true });
    for (let f = 0; f < FILES; f += 1)
      fs.writeFileSync(join(directory, `f${f}`), `file ${d}/${f}\n`.repeat((d * 97) % 1021));
  }
}

const inWorktree = (lab: Lab) => (path: string) => join(lab.worktree, path);

it("stores every path once, each in the right layer", async () => {
  using lab = createLab();
  const at = inWorktree(lab);
  const git = (...args: string[]) => execFileSync("git", ["-C", lab.worktree, ...args]);
  git("init", "-q");
  fill(lab);
  fs.writeFileSync(at(".gitignore"), "/d?*/deep/\n!/d6/deep/\n");
  fs.writeFileSync(at("d7/deep/large"), Buffer.alloc(5 << 20, "large "));
  fs.symlinkSync("deep/f1", at("d8/link"));
  execFileSync("mkfifo", [at("d8/fifo")]);
  fs.mkdirSync(at("d8/empty"));
  fs.writeFileSync(at("d9/.env"), "secret");
  fs.linkSync(at("d9/.env"), at("d3/alias-of-a-secret"));
  fs.linkSync(at("d4/deep/f0"), at("d1/second-name"));
  fs.linkSync(at("d5/deep/f1"), at(".git/name-in-git"));
  using database = new DatabaseSync(at("d6/deep/agent.db"));
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1), (2), (3)");

  const { ref, checkpoint, flaws, outcome } = await lab.checkpoint();
  expect([outcome, flaws, checkpoint.metadata.git.status]).toEqual(["captured", [], "committed"]);
  const names = (local: boolean) =>
    checkpoint.layers
      .filter(({ mediaType }) => isLocalOnly(mediaType) === local)
      .flatMap((layer) => {
        using open = openLayerOf(lab.context.vault, layer);
        return open.toc.entries.map(({ path }) => path);
      });
  expect(names(true).sort()).toEqual(["worktree/d3/alias-of-a-secret", "worktree/d9/.env"]);
  const ordinary = names(false);
  const before = new Set(["."]);
  for (const path of ordinary) {
    const parent = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ".";
    expect(before.has(parent), `${parent} comes before ${path}`).toBe(true);
    before.add(path);
  }
  expect(before.size, "no path is stored twice").toBe(ordinary.length);

  const isOfDatabase = (line: string) => line.includes("agent.db");
  const restored = await lab.restored(ref.id);
  const tree = (directory: string) => listTree(directory).filter((line) => !isOfDatabase(line));
  expect(tree(restored)).toEqual(tree(lab.cell));
  expect(fs.existsSync(join(restored, "worktree/d6/deep/agent.db-wal"))).toBe(false);
  using copy = new DatabaseSync(join(restored, "worktree/d6/deep/agent.db"));
  expect(copy.prepare("SELECT sum(x) AS sum FROM t").get()).toEqual({ sum: 6 });
  await lab.verify();
  fs.rmSync(at("d6"), { recursive: true });
  const next = await lab.checkpoint();
  expect(next.checkpoint.metadata.counts.changed, "d6 took the database along").toBeLessThan(100);
});

it("is a layer from which plain tar restores directories with their times", async () => {
  using lab = createLab();
  fill(lab);
  // If tar returned to a directory that it has finished, the directory's time would change.
  execFileSync("find", [lab.cell, "-type", "d", "-exec", "touch", "-t", "202001010000", "{}", "+"]);
  const { checkpoint } = await lab.checkpoint();
  const unpacked = join(lab.directory, "unpacked");
  fs.mkdirSync(unpacked);
  execFileSync("tar", ["xzf", lab.context.vault.blobPath(checkpoint.layers[0]!.digest), "-C", unpacked]);
  expect(listTree(unpacked)).toEqual(listTree(lab.cell));
});

it("is consistent while an agent creates and removes directories", async () => {
  using lab = createLab({ aheadMs: 0 });
  fill(lab);
  const script =
    "while :; do for i in 11 44 77 99; do rm -rf d$i; mkdir -p d$i/new/x; echo a > d$i/new/x/f; done; sleep 0.01; done";
  const agent = spawn("sh", ["-c", script], { cwd: lab.worktree, stdio: "ignore" });
  const ended = new Promise((resolve) => agent.on("close", resolve));
  try {
    const { ref } = await lab.checkpoint();
    await lab.verify();
    const restored = await lab.restored(ref.id);
    expect(fs.readdirSync(join(restored, "worktree/d50/deep"))).toHaveLength(FILES);
  } finally {
    agent.kill("SIGKILL");
    await ended;
  }
});

it("reports a full disk, leaves nothing behind, and succeeds on the next attempt", async () => {
  using lab = createLab();
  fill(lab);
  for (const at of [1, 3]) {
    let writes = 0;
    const isFull = ({ method, path }: { method: string; path: string }) =>
      method === "write" && path.endsWith("/layer") && ++writes === at;
    const disk = createFaultyDisk(systemDisk, { code: "ENOSPC", at: isFull });
    await expect(lab.with({ machine: { disk } }).checkpoint()).rejects.toMatchObject({
      code: "DISK_FULL",
    });
    expect(lab.context.vault.list()).toEqual([]);
    expect(fs.readdirSync(lab.context.vault.scratch)).toEqual([]);
  }
  const { flaws } = await lab.checkpoint();
  expect(flaws).toEqual([]);
  await lab.verify();
});
