// A worktree outside the cell: captured as worktree/…, restored in place, never confused with another directory, and no file of
// Lazarus is left in it.
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { initCell } from "../../src/cell/init.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { listCurrent } from "../../src/snapshot/operations/current-listing.ts";
import { drill } from "../../src/snapshot/operations/drill.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { missionOf, protectDirectory, releaseDirectory } from "../../src/snapshot/operations/protect.ts";
import { previewRestore, restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { isLocalOnly } from "../../src/snapshot/vault/codec.ts";
import { isRoot } from "../plain-user.ts";
import {
  createOutsideWorld,
  differences,
  openMission,
  otherFileSystem,
  recordTree,
  type World,
} from "./restore-world.ts";

let base: string;
let other: string | undefined;

beforeAll(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-in-place-")));
  other = otherFileSystem();
  if (other === undefined) console.log("skipped on another file system: there is none that can be used");
});

afterAll(() => {
  for (const directory of [base, other])
    if (directory !== undefined) fs.rmSync(directory, { recursive: true, force: true });
});

let count = 0;
function fresh(parent: string): string {
  count += 1;
  return join(parent, `project-${count}`);
}

const home = () => fs.mkdtempSync(join(base, "home-"));

function fill(world: World): void {
  world.write("worktree/src/a.txt", "a");
  world.write("worktree/src/b.txt", "b");
  world.write("worktree/.env", "KEY=secret-value");
  world.write("worktree/build/ignored.o", "object");
  world.write("worktree/.gitignore", "build/\n");
  world.write("state/notes", "in the cell");
  fs.symlinkSync("src/a.txt", world.path("worktree/link"));
  fs.linkSync(world.path("worktree/src/a.txt"), world.path("worktree/hard"));
}

function change(world: World): void {
  world.write("worktree/src/a.txt", "a, changed");
  fs.rmSync(world.path("worktree/src/b.txt"));
  fs.rmSync(world.path("worktree/.env"), { force: true });
  fs.rmSync(world.path("worktree/build"), { recursive: true, force: true });
  world.write("worktree/new/file", "new");
  world.write("state/notes", "changed, too");
}

const places = (): [string, string][] => [
  ["on the same file system", base],
  ...(other === undefined ? [] : ([["on another file system", other]] as [string, string][])),
];

describe("a worktree in place", () => {
  it("is saved and restored, undone and redone", async () => {
    for (const [name, parent] of places()) {
      const directory = fresh(parent);
      using world = await createOutsideWorld(home(), directory);
      fill(world);
      const before = recordTree(directory);
      const { ref, flaws } = await world.checkpoint();
      expect(flaws, name).toEqual([]);
      expect(differences(recordTree(directory), before)).toEqual([]);
      expect(fs.readdirSync(join(world.cell, "worktree"))).toEqual([]);
      change(world);
      const changed = recordTree(directory);
      const result = await restoreCell(world.context, { checkpoint: ref.id });
      expect(result.flaws, name).toEqual([]);
      expect(differences(recordTree(directory), before), name).toEqual([]);
      expect(fs.readFileSync(world.path("state/notes"), "utf8")).toBe("in the cell");
      expect((await undoRestore(world.reopen())).flaws).toEqual([]);
      expect(differences(recordTree(directory), changed), name).toEqual([]);
      await undoRestore(world.reopen());
      expect(differences(recordTree(directory), before), name).toEqual([]);
      expect(fs.readdirSync(parent).filter((each) => each.startsWith(".lazarus"))).toEqual([]);
      await takeCheckpoint(world.reopen(), { reason: "manual" });
      expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).outcome, name).toBe("unchanged");
    }
  });

  it("can be previewed, restored elsewhere, drilled and forked", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const before = recordTree(world.path("worktree"));
    const { ref } = await world.checkpoint();
    change(world);
    const { changes } = await previewRestore(world.context, { checkpoint: ref.id });
    expect(changes.changed).toContain("worktree/src/a.txt");
    expect(changes.added).toContain("worktree/.env");
    const to = fresh(base);
    await restoreTo(world.context, { checkpoint: ref.id, directory: to });
    expect(differences(recordTree(join(to, "worktree")), before)).toEqual([]);
    expect((await drill(world.context, { checkpoint: ref.id })).differences).toEqual([]);
    const fork = openMission(world.directory, "copy");
    await forkMission(world.context, fork, { at: ref.id });
    expect(differences(recordTree(join(fork.cellRoot, "worktree")), before)).toEqual([]);
    expect(JSON.parse(fs.readFileSync(join(fork.cellRoot, "config/cell.json"), "utf8")).worktree).toBe(
      join(fork.cellRoot, "worktree"),
    );
    // The worktree itself was not touched.
    expect(fs.readFileSync(world.path("worktree/src/a.txt"), "utf8")).toBe("a, changed");
  });

  it("has one path restored, named relative to the cell or absolute", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const { ref } = await world.checkpoint();
    for (const path of ["worktree/src", world.path("worktree/src")]) {
      change(world);
      await restoreCell(world.reopen(), { checkpoint: ref.id, paths: [path] });
      expect(fs.readFileSync(world.path("worktree/src/b.txt"), "utf8")).toBe("b");
      expect(fs.existsSync(world.path("worktree/.env"))).toBe(false);
    }
  });

  it("of another user, on another file system, is restored by root without staging where that user can write", async () => {
    if (!isRoot || other === undefined) {
      console.log("skipped: needs root and another file system");
      return;
    }
    const parent = fresh(other);
    const directory = join(parent, "project");
    using world = await createOutsideWorld(home(), directory);
    fill(world);
    execFileSync("chown", ["-R", "12345:12345", parent]);
    const { ref } = await world.checkpoint();
    const before = recordTree(directory);
    change(world);
    const seen = new Set<string>();
    const onProgress = () => {
      for (const name of [...fs.readdirSync(directory), ...fs.readdirSync(parent)]) seen.add(name);
    };
    const { flaws } = await restoreCell({ ...world.reopen(), onProgress }, { checkpoint: ref.id });
    expect(flaws).toEqual([]);
    expect(differences(recordTree(directory), before)).toEqual([]);
    expect([...seen].filter((name) => name.startsWith(".lazarus-restore-m"))).toEqual([]);
  });

  it("keeps key files in the local-only layer", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const { checkpoint } = await world.checkpoint();
    expect(checkpoint.layers.map(({ mediaType }) => isLocalOnly(mediaType))).toEqual([false, true]);
  });

  it("detects a process that has one of its files open", async () => {
    using world = await createOutsideWorld(home(), fresh(other ?? base));
    fill(world);
    const { ref } = await world.checkpoint();
    change(world);
    const fd = fs.openSync(world.path("worktree/src/a.txt"), "r+");
    try {
      const attempt = restoreCell(world.reopen(), { checkpoint: ref.id });
      if (process.platform === "linux") await expect(attempt).rejects.toMatchObject({ code: "CELL_IN_USE" });
    } finally {
      fs.closeSync(fd);
    }
  });

  it("leaves a git repository without a trace", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", world.path("worktree"), ...args], { encoding: "utf8", env: GIT_ENV });
    git("init", "-q", "-b", "main");
    git("add", "-A");
    git("commit", "-q", "-m", "first");
    fs.appendFileSync(world.path("worktree/src/a.txt"), "!");
    const before = recordTree(world.path("worktree"));
    const { ref, checkpoint, flaws } = await world.checkpoint();
    expect(flaws).toEqual([]);
    expect(checkpoint.metadata.git).toMatchObject({
      status: "none",
      branch: "main",
      commit: null,
      ref: null,
    });
    expect(checkpoint.metadata.git.head).toBe(git("rev-parse", "HEAD").trim());
    expect(differences(recordTree(world.path("worktree")), before)).toEqual([]);
    git("checkout", "-q", ".");
    git("commit", "-q", "--allow-empty", "-m", "second");
    await restoreCell(world.reopen(), { checkpoint: ref.id });
    expect(differences(recordTree(world.path("worktree")), before)).toEqual([]);
    expect(git("for-each-ref", "refs/lazarus")).toBe("");
    expect(git("status", "--porcelain")).toBe(" M hard\n M src/a.txt\n");
  });
});

describe("a linked git worktree in place", () => {
  const git = (directory: string, ...args: string[]) =>
    execFileSync("git", ["-C", directory, ...args], { encoding: "utf8", env: GIT_ENV });

  it("is saved with its repository, which is never written to, and keeps its link as long as that exists", async () => {
    const repository = fresh(base);
    const directory = fresh(base);
    git(base, "init", "-q", "-b", "main", repository);
    git(repository, "commit", "-q", "--allow-empty", "-m", "first");
    git(repository, "worktree", "add", "-q", directory);
    using world = await createOutsideWorld(home(), directory);
    world.write("worktree/file", "x");
    const link = fs.readFileSync(join(directory, ".git"), "utf8");
    const before = recordTree(repository);
    const { ref, flaws } = await world.checkpoint();
    expect(flaws).toEqual([]);
    // Moved without telling git; the user has to repair that.
    fs.renameSync(directory, `${directory}-moved`);
    await protectDirectory(world.reopen(), `${directory}-moved`, undefined);
    fs.rmSync(join(`${directory}-moved`, "file"));
    expect((await restoreCell(world.reopen(), { checkpoint: ref.id })).flaws).toEqual([]);
    expect(fs.readFileSync(join(`${directory}-moved`, ".git"), "utf8")).toBe(link);
    expect(differences(recordTree(repository), before)).toEqual([]);
    fs.rmSync(repository, { recursive: true });
    fs.rmSync(join(`${directory}-moved`, "file"));
    await restoreCell(world.reopen(), { checkpoint: ref.id });
    expect(git(`${directory}-moved`, "log", "--format=%s").trim()).toBe("first");
    expect(git(`${directory}-moved`, "status", "--porcelain")).toBe("?? file\n");
    fs.rmSync(`${directory}-moved`, { recursive: true });
  });
});

const GIT_ENV = {
  PATH: process.env.PATH,
  HOME: tmpdir(),
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@localhost",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@localhost",
};

describe("a worktree in place that is not where it was", () => {
  it("is neither captured nor restored when another directory has taken its place", async () => {
    const directory = fresh(base);
    using world = await createOutsideWorld(home(), directory);
    fill(world);
    const { ref } = await world.checkpoint();
    fs.renameSync(directory, `${directory}-moved`);
    fs.mkdirSync(directory);
    fs.writeFileSync(join(directory, "other"), "of somebody else");
    const expected = { code: "WORKTREE_REPLACED", message: expect.stringContaining(directory) };
    for (const context of [world.context, world.reopen()]) {
      await expect(takeCheckpoint(context, { reason: "manual" })).rejects.toMatchObject(expected);
      await expect(restoreCell(context, { checkpoint: ref.id })).rejects.toMatchObject(expected);
      await expect(listCurrent(context)).rejects.toMatchObject(expected);
    }
    expect(fs.readdirSync(directory)).toEqual(["other"]);
    // Confirmed: the moved directory is the worktree again, at its new path.
    const moved = await protectDirectory(world.reopen(), `${directory}-moved`, undefined);
    expect(moved.change).toBe("moved");
    expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).flaws).toEqual([]);
    await restoreCell(world.reopen(), { checkpoint: ref.id });
    expect(fs.readdirSync(directory)).toEqual(["other"]);
    const cell = JSON.parse(fs.readFileSync(join(world.cell, "config/cell.json"), "utf8"));
    expect(cell.worktree).toBe(`${directory}-moved`);
    fs.rmSync(`${directory}-moved`, { recursive: true });
  });

  it("is not captured when it is replaced while it is being read", async () => {
    const directory = fresh(base);
    using world = await createOutsideWorld(home(), directory);
    for (let i = 0; i < 20; i += 1) world.write(`worktree/large-${i}`, Buffer.alloc(2 << 20, i));
    let isSwapped = false;
    const onProgress = () => {
      if (isSwapped) return;
      isSwapped = true;
      fs.renameSync(directory, `${directory}-moved`);
      fs.cpSync(`${directory}-moved`, directory, { recursive: true });
    };
    const attempt = takeCheckpoint({ ...world.context, onProgress }, { reason: "manual" });
    await expect(attempt).rejects.toMatchObject({ code: "WORKTREE_REPLACED" });
    expect(isSwapped).toBe(true);
    expect(world.context.vault.list()).toEqual([]);
    fs.rmSync(`${directory}-moved`, { recursive: true });
  });

  it("is rebuilt by a restore when it is missing", async () => {
    for (const [name, parent] of places()) {
      const directory = fresh(parent);
      using world = await createOutsideWorld(home(), directory);
      fill(world);
      const { ref } = await world.checkpoint();
      const before = recordTree(directory);
      fs.rmSync(directory, { recursive: true });
      await expect(world.checkpoint()).rejects.toMatchObject({ code: "WORKTREE_MISSING" });
      const preview = await previewRestore(world.reopen(), {});
      expect(preview.changes.added).toContain("worktree/src/a.txt");
      fs.mkdirSync(directory);
      expect((await previewRestore(world.reopen(), {})).changes.added).toEqual(
        preview.changes.added.filter((path) => path !== "worktree"),
      );
      if (name.includes("same")) fs.rmdirSync(directory);
      const { flaws } = await restoreCell(world.reopen(), {});
      expect(flaws, name).toEqual([]);
      expect(differences(recordTree(directory), before), name).toEqual([]);
      const next = await takeCheckpoint(world.reopen(), { reason: "manual" });
      expect(next.flaws).toEqual([]);
      expect(next.checkpoint.metadata.counts.files).toBeGreaterThan(5);
      await restoreCell(world.reopen(), { checkpoint: ref.id });
    }
  });

  it("is not rebuilt when the directory above it is gone too: a disk may not be mounted", async () => {
    const parent = fresh(base);
    const directory = join(parent, "project");
    using world = await createOutsideWorld(home(), directory);
    fill(world);
    await world.checkpoint();
    fs.rmSync(parent, { recursive: true });
    await expect(restoreCell(world.reopen(), {})).rejects.toMatchObject({ code: "WORKTREE_MISSING" });
    fs.mkdirSync(parent);
    await expect(restoreCell(world.reopen(), {})).rejects.toMatchObject({ code: "WORKTREE_MISSING" });
    fs.mkdirSync(directory);
    await protectDirectory(world.reopen(), directory, undefined);
    await restoreCell(world.reopen(), {});
    expect(fs.readFileSync(join(directory, "src/a.txt"), "utf8")).toBe("a");
  });

  it("survives the loss of the cell", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const { ref } = await world.checkpoint();
    const before = recordTree(world.path("worktree"));
    change(world);
    fs.rmSync(world.cell, { recursive: true });
    const { changes } = await previewRestore(world.reopen(), { checkpoint: ref.id });
    expect(changes.changed).toEqual(["worktree/hard", "worktree/src/a.txt"]);
    expect(changes.added).toContain("state/notes");
    expect(changes.removed).toContain("worktree/new/file");
    const { flaws } = await restoreCell(world.reopen(), { checkpoint: ref.id });
    expect(flaws).toEqual([]);
    expect(differences(recordTree(world.path("worktree")), before)).toEqual([]);
    expect(fs.readFileSync(world.path("state/notes"), "utf8")).toBe("in the cell");
    expect(fs.readdirSync(join(world.cell, "worktree"))).toEqual([]);
  });

  it("is not chosen by an agent that writes config/cell.json", async () => {
    const victim = fresh(base);
    fs.mkdirSync(victim);
    fs.writeFileSync(join(victim, "precious"), "x");
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    const { ref } = await world.checkpoint();
    const file = join(world.cell, "config/cell.json");
    const own = world.path("worktree");
    fs.writeFileSync(
      file,
      JSON.stringify({ ...JSON.parse(fs.readFileSync(file, "utf8")), worktree: victim }),
    );
    change(world);
    await restoreCell(world.reopen(), { checkpoint: ref.id });
    expect(fs.readdirSync(victim)).toEqual(["precious"]);
    expect(JSON.parse(fs.readFileSync(file, "utf8")).worktree).toBe(own);
  });
});

describe("setting up a worktree in place", () => {
  const refused = (path: string, from: World, mission = "n") =>
    expect(
      protectDirectory(openMission(from.directory, mission), path, from.directory),
    ).rejects.toMatchObject({
      code: "WORKTREE_REFUSED",
    });

  it("refuses overlaps, the root, the home directory and those of Lazarus", async () => {
    const parent = fresh(base);
    const directory = join(parent, "project");
    using world = await createOutsideWorld(home(), directory);
    fs.mkdirSync(join(directory, "below"));
    for (const path of ["/", directory, join(directory, "below"), parent, world.directory, world.cell])
      await refused(path, world);
    await refused(join(world.directory, "vault"), world);
    await refused(base, world);
    // The same mission cannot have a second directory while the first is there.
    await refused(fs.mkdtempSync(join(base, "second-")), world, "m");
    expect((await protectDirectory(world.reopen(), directory, undefined)).change).toBe("same");
    expect(missionOf(world.context.config, directory)).toBe("m");
  });

  it("refuses a directory of another mission that is mounted at a second place", async ({ skip }) => {
    const parent = fresh(base);
    const directory = join(parent, "project");
    using world = await createOutsideWorld(home(), directory);
    fs.mkdirSync(join(directory, "below"));
    const second = fs.mkdtempSync(join(base, "mount-"));
    if (spawnSync("mount", ["--bind", parent, second]).status !== 0)
      skip("mounting needs root and the right");
    try {
      for (const path of [second, join(second, "project"), join(second, "project", "below")])
        await refused(path, world);
    } finally {
      execFileSync("umount", ["-l", second]);
    }
  });

  it("refuses a mission that has files in its own worktree", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    const plain = openMission(world.directory, "plain");
    fs.mkdirSync(join(plain.cellRoot, "worktree"), { recursive: true });
    fs.writeFileSync(join(plain.cellRoot, "worktree/file"), "x");
    await expect(
      protectDirectory(plain, fs.mkdtempSync(join(base, "dir-")), undefined),
    ).rejects.toMatchObject({
      code: "WORKTREE_NOT_EMPTY",
    });
  });

  it("is undone by a release, which leaves the directory and the checkpoints", async () => {
    const directory = fresh(base);
    using world = await createOutsideWorld(home(), directory);
    fill(world);
    const { ref } = await world.checkpoint();
    const before = recordTree(directory);
    await releaseDirectory(world.reopen());
    expect(differences(recordTree(directory), before)).toEqual([]);
    await expect(takeCheckpoint(world.reopen(), { reason: "manual" })).rejects.toMatchObject({
      code: "WORKTREE_RELEASED",
    });
    await expect(restoreCell(world.reopen(), {})).rejects.toMatchObject({ code: "WORKTREE_RELEASED" });
    const to = fresh(base);
    await restoreTo(world.reopen(), { checkpoint: ref.id, directory: to });
    expect(differences(recordTree(join(to, "worktree")), before)).toEqual([]);
    expect(missionOf(world.context.config, directory)).toBe("m");
    await protectDirectory(world.reopen(), directory, undefined);
    expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).flaws).toEqual([]);
  });

  it("reserves the name: no fork or import gets it", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    await world.checkpoint();
    fs.mkdirSync(join(world.directory, "missions/other"), { recursive: true });
    await protectDirectory(
      openMission(world.directory, "taken"),
      fs.mkdtempSync(join(base, "taken-")),
      undefined,
    );
    fs.rmSync(openMission(world.directory, "taken").cellRoot, { recursive: true });
    await expect(forkMission(world.context, openMission(world.directory, "taken"), {})).rejects.toThrow(
      "already exists",
    );
  });

  it("reports a directory that only config/cell.json names, and does not capture it", async () => {
    const named = fs.mkdtempSync(join(base, "named-"));
    fs.writeFileSync(join(named, "file"), "x");
    using world = await createOutsideWorld(home(), fresh(base));
    const plain = openMission(world.directory, "plain");
    initCell(plain.machine, plain.config, plain.mission);
    const file = join(plain.cellRoot, "config/cell.json");
    fs.writeFileSync(file, JSON.stringify({ worktree: named }));
    const { flaws, checkpoint } = await takeCheckpoint(plain, { reason: "manual" });
    expect(flaws).toMatchObject([{ path: "config/cell.json", kind: "degraded" }]);
    expect(flaws[0]!.reason).toContain(`lazarus protect ${named} --mission plain`);
    expect(checkpoint.metadata.counts.files).toBe(4);
  });

  it("does not restore checkpoints from before into the directory", async () => {
    const at = home();
    const plain = openMission(at, "m");
    initCell(plain.machine, plain.config, plain.mission);
    const { ref } = await takeCheckpoint(plain, { reason: "manual" });
    using world = await createOutsideWorld(at, fresh(base));
    fill(world);
    await world.checkpoint();
    const refused = { code: "WORKTREE_REFUSED", hint: expect.stringContaining("--to DIR") };
    await expect(restoreCell(world.reopen(), { checkpoint: ref.id })).rejects.toMatchObject(refused);
    await expect(previewRestore(world.reopen(), { checkpoint: ref.id })).rejects.toMatchObject(refused);
    expect(fs.readFileSync(world.path("worktree/src/a.txt"), "utf8")).toBe("a");
    await restoreCell(world.reopen(), { checkpoint: ref.id, paths: ["meta"] });
    // The directory's own checkpoints stay valid when it is released and protected again.
    const own = (await takeCheckpoint(world.reopen(), { reason: "manual" })).ref.id;
    await releaseDirectory(world.reopen());
    await protectDirectory(world.reopen(), world.path("worktree"), undefined);
    await restoreCell(world.reopen(), { checkpoint: own });
  });

  it("reports files that the directory hides", async () => {
    using world = await createOutsideWorld(home(), fresh(base));
    fill(world);
    fs.writeFileSync(join(world.cell, "worktree/stray"), "x");
    expect((await world.checkpoint()).flaws).toMatchObject([{ path: "worktree", kind: "degraded" }]);
  });
});
