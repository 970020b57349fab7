// Restores into a directory, forks and drills: operations that create a tree without touching the cell.
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compareTree } from "../../src/snapshot/archive/compare-tree.ts";
import { drill } from "../../src/snapshot/operations/drill.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { detectCapabilities } from "../../src/snapshot/restore/make-path.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
import { createRandom } from "../../src/testing/index.ts";
import { makeLayer, publishCheckpoint } from "./hand-made.ts";
import { createWorld, differences, openMission, recordTree, type World } from "./restore-world.ts";

let world: World;
let directory: string;
beforeEach(() => {
  world = createWorld();
  directory = join(world.directory, "to");
});
afterEach(() => world[Symbol.dispose]());

describe("a restore into a directory", () => {
  it("produces the same tree, with workers when it is large", async () => {
    const random = createRandom(3);
    for (let i = 0; i < 1500; i += 1)
      world.write(`worktree/${i % 40}/${i}`, random.bytes(random.int(0, 3000)));
    // Larger than a member, and larger than a batch.
    world.write("worktree/large", random.bytes(12 << 20));
    fs.linkSync(world.path("worktree/large"), world.path("worktree/0/linked"));
    fs.symlinkSync("nowhere", world.path("worktree/link"));
    fs.mkdirSync(world.path("worktree/closed"), 0o500);
    await world.checkpoint();
    for (let i = 0; i < 1500; i += 150) world.write(`worktree/${i % 40}/${i}`, "changed");
    const before = recordTree(world.cell);
    await world.checkpoint();
    const { files, flaws } = await restoreTo(world.context, { directory });
    expect(differences(before, recordTree(directory))).toEqual([]);
    expect(flaws).toEqual([]);
    expect(files).toBeGreaterThan(1500);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
  });

  it("leaves the directory empty and the cell untouched when interrupted", async () => {
    const random = createRandom(4);
    for (let i = 0; i < 40; i += 1) world.write(`worktree/${i}`, random.bytes(500_000));
    await world.checkpoint();
    const interrupt = new AbortController();
    const context = { ...world.context, onProgress: () => interrupt.abort() };
    const failed = { code: "INTERRUPTED", message: "interrupted by a signal; it was emptied" };
    await expect(restoreTo(context, { directory, signal: interrupt.signal })).rejects.toMatchObject(failed);
    expect(fs.readdirSync(directory)).toEqual([]);
    for (let i = 0; i < 40; i += 1) world.write(`worktree/${i}`, "now");
    const before = recordTree(world.cell);
    const untouched = { code: "INTERRUPTED", message: "interrupted by a signal; the cell was not touched" };
    const { id } = world.context.vault.list()[0]!;
    await expect(
      restoreCell(world.context, { checkpoint: id, signal: interrupt.signal }),
    ).rejects.toMatchObject(untouched);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(world.siblings()).toEqual([]);
  });

  it("restores selected paths with their parent directories", async () => {
    world.write("worktree/a/b/c", "1");
    world.write("worktree/a/d", "1");
    await world.checkpoint();
    await restoreTo(world.context, { directory, paths: [world.path("worktree/a/b")] });
    expect([...recordTree(directory).keys()]).toEqual([
      ".",
      "worktree",
      "worktree/a",
      "worktree/a/b",
      "worktree/a/b/c",
    ]);
  });

  it("refuses a non-empty directory, a file, and the vault", async () => {
    await world.checkpoint();
    fs.mkdirSync(directory);
    fs.writeFileSync(join(directory, "mine"), "");
    await expect(restoreTo(world.context, { directory })).rejects.toThrow("is not empty");
    await expect(restoreTo(world.context, { directory: join(directory, "mine") })).rejects.toThrow(
      "is not a directory",
    );
    const inside = join(world.context.vault.root, "x");
    await expect(restoreTo(world.context, { directory: inside })).rejects.toThrow("is inside the vault");
    expect(fs.readdirSync(directory)).toEqual(["mine"]);
  });

  it("creates parent directories, and explains when it cannot", async (context) => {
    await world.checkpoint();
    const deep = join(directory, "a/b/c");
    await restoreTo(world.context, { directory: deep });
    expect(fs.existsSync(join(deep, "worktree"))).toBe(true);
    fs.symlinkSync("nowhere", join(directory, "dangling"));
    await expect(restoreTo(world.context, { directory: join(directory, "dangling") })).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
    if (!fs.existsSync("/proc/self")) context.skip("there is no /proc here");
    await expect(restoreTo(world.context, { directory: "/proc/lazarus" })).rejects.toMatchObject({
      code: expect.stringMatching(/^(NOT_FOUND|PERMISSION|DISK_READ_ONLY)$/),
      message: expect.stringContaining("/proc/lazarus"),
    });
  });

  it("refuses a symlink into the vault, and a vault inside the cell through a symlink", async () => {
    await world.checkpoint();
    fs.symlinkSync(world.context.vault.root, directory);
    const inside = join(directory, "x");
    await expect(restoreTo(world.context, { directory: inside })).rejects.toThrow("is inside the vault");
    const home = join(world.directory, "home");
    fs.mkdirSync(join(home, "missions/m/worktree/vault"), { recursive: true });
    fs.symlinkSync("missions/m/worktree/vault", join(home, "vault"));
    expect(() => openMission(home, "m")).toThrow(expect.objectContaining({ code: "VAULT_MISPLACED" }));
  });

  it("lists paths that are too long there and restores the others; a second restore in place restores all", async () => {
    let parent = "worktree";
    while (world.path(parent).length < 3800) parent += `/${"d".repeat(200)}`;
    const long = `${parent}/${"e".repeat(4090 - world.path(parent).length - 1)}`;
    world.write(long, "far away");
    world.write(`${parent}/near`, "near");
    const before = recordTree(world.cell);
    await world.checkpoint();
    const longer = join(world.directory, "a-directory-with-a-long-name", "x".repeat(30));
    const { flaws } = await restoreTo(world.context, { directory: longer });
    expect(flaws).toEqual([{ path: long, kind: "skipped", reason: expect.stringContaining("too long") }]);
    fs.rmSync(world.cell, { recursive: true });
    expect((await restoreCell(world.context, {})).flaws).toMatchObject([{ path: long, kind: "skipped" }]);
    expect((await restoreCell(world.context, {})).flaws).toEqual([]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
  });

  it("refuses an entry below anything but a directory", async () => {
    await world.checkpoint();
    for (const [drafts, problem] of [
      [[{ path: "way", type: "symlink", target: "/tmp" } as const], '"way/out" is below a symlink'],
      [[], '"way/out" is below a missing directory'],
    ] as const) {
      const root = { path: ".", type: "directory" } as const;
      const layer = makeLayer(world.context, [root, ...drafts, { path: "way/out", content: "x" }]);
      const { id } = publishCheckpoint(world.context, [layer]);
      const directory = join(world.directory, id);
      await expect(restoreTo(world.context, { checkpoint: id, directory })).rejects.toThrow(problem);
      expect(fs.existsSync(directory)).toBe(false);
    }
  });
});

describe("a fork", () => {
  it("creates an independent mission from any checkpoint", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "now");
    await world.checkpoint();
    const before = recordTree(world.cell);
    const fork = openMission(world.directory, "other");
    const { from, capture, flaws } = await forkMission(world.context, fork, { at: ref.id });
    expect([from.id, capture.ref.reason, flaws]).toEqual([ref.id, "fork", []]);
    expect(fs.readFileSync(join(fork.cellRoot, "worktree/a"), "utf8")).toBe("then");
    expect(JSON.parse(fs.readFileSync(join(fork.cellRoot, "config/cell.json"), "utf8"))).toEqual({
      mission_id: "other",
      worktree: join(fork.cellRoot, "worktree"),
      artifacts: join(fork.cellRoot, "artifacts"),
      heartbeat_file: join(fork.cellRoot, "state/heartbeat.json"),
    });
    expect(JSON.parse(fs.readFileSync(join(fork.cellRoot, "meta/mission.json"), "utf8"))).toMatchObject({
      mission_id: "other",
      forked_from: { mission_id: "m", checkpoint_id: ref.id },
    });
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    // The vaults share bytes through hard links, and neither needs the other.
    const shared = capture.checkpoint.layers[0]!.digest;
    expect(fs.statSync(fork.vault.blobPath(shared)).nlink).toBe(2);
    fs.rmSync(world.context.vault.root, { recursive: true });
    fs.writeFileSync(join(fork.cellRoot, "worktree/a"), "changed in the fork");
    await restoreCell(fork, { checkpoint: capture.ref.id });
    expect(fs.readFileSync(join(fork.cellRoot, "worktree/a"), "utf8")).toBe("then");
  });

  it("refuses a name that is in use by a cell or by checkpoints", async () => {
    await world.checkpoint();
    await expect(forkMission(world.context, world.context, {})).rejects.toThrow("already exists");
    const fork = openMission(world.directory, "other");
    await forkMission(world.context, fork, {});
    await restoreCell(fork, {});
    fs.rmSync(fork.cellRoot, { recursive: true });
    await expect(forkMission(world.context, fork, {})).rejects.toThrow(
      "holds 1 checkpoint of an earlier mission",
    );
  });
});

describe("a drill", () => {
  it("marks the checkpoint as proven, and those with the same content", async () => {
    world.write("worktree/a", "1");
    const { ref } = await world.checkpoint();
    await world.checkpoint("the same again");
    const result = await drill(world.context, { checkpoint: ref.id });
    expect(result.differences).toEqual([]);
    expect(world.context.vault.list().every(({ provenAtMs }) => provenAtMs !== null)).toBe(true);
    expect(world.siblings()).toEqual([]);
  });

  it("detects every kind of difference", async () => {
    world.write("worktree/a", "1");
    fs.linkSync(world.path("worktree/a"), world.path("worktree/b"));
    fs.symlinkSync("a", world.path("worktree/l"));
    world.write("worktree/time", "1");
    const { checkpoint } = await world.checkpoint();
    using contents = openContents(world.context.vault, checkpoint.layers);
    const { owners, posix } = detectCapabilities();
    const compare = () =>
      compareTree(directory, contents.listing, { owners, posix }).map(({ path, what }) => `${path} ${what}`);
    await restoreTo(world.context, { directory });
    expect(compare()).toEqual([]);
    const at = (name: string) => join(directory, "worktree", name);
    const { atime, mtime } = fs.statSync(join(directory, "worktree"));
    fs.writeFileSync(at("extra"), "");
    fs.rmSync(at("b"));
    fs.copyFileSync(at("a"), at("b"));
    fs.chmodSync(at("a"), 0o600);
    fs.rmSync(at("l"));
    fs.symlinkSync("b", at("l"));
    fs.appendFileSync(at("time"), "2");
    fs.rmSync(join(directory, "logs/daemon.log"));
    fs.utimesSync(join(directory, "worktree"), atime, mtime);
    const seen = compare().join("\n");
    for (const sign of [
      "worktree/extra should not be there",
      "worktree/b is not linked",
      "worktree/a mode is 600, should be 644",
      'worktree/l target is "b", should be "a"',
      "worktree/time size is 2, should be 1",
      "worktree/time time in nanoseconds",
      "logs/daemon.log is missing",
    ]) {
      expect(seen).toContain(sign);
    }
  });

  it("refuses a second drill at the same time", async () => {
    await world.checkpoint();
    const both = await Promise.allSettled([drill(world.context), drill(world.context)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const { reason } = both.find((each) => each.status === "rejected") as PromiseRejectedResult;
    expect(reason.code).toBe("LOCK_HELD");
  });
});
