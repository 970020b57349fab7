// Commands typed inside a protected directory or a cell: the mission can be omitted or written as `.`, and paths are
// relative to the current directory.
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, type Ending, type World } from "./hermetic.ts";

let world: World;
let project: string;

async function typed(directory: string, ...words: string[]): Promise<Ending> {
  return await world.call(words, { cwd: directory });
}

async function runOk(directory: string, ...words: string[]): Promise<string> {
  const { exit, stdout, stderr } = await typed(directory, ...words);
  expect(exit, `lazarus ${words.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

beforeAll(async () => {
  world = createWorld();
  project = world.path("shop");
  mkdirSync(join(project, "src"), { recursive: true });
  mkdirSync(join(project, "config"));
  writeFileSync(join(project, "notes.md"), "notes\n");
  writeFileSync(join(project, "src", "app.ts"), "app\n");
  writeFileSync(join(project, "config", "app.json"), "{}\n");
  await runOk(project, "protect", ".");
  symlinkSync(project, world.path("link"));
  await runOk(world.cwd, "init", "other");
});
afterAll(() => world[Symbol.dispose]());

describe("the mission", () => {
  it("can be omitted where nothing else is required", async () => {
    const { checkpoints } = JSON.parse(await runOk(project, "checkpoints", "--json"));
    expect(checkpoints).toHaveLength(1);
    expect(await runOk(join(project, "src"), "ls")).toContain("worktree/");
    expect((await typed(project, "undo")).stderr).toContain("shop");
  });

  it("is . when something follows it, even with a checkpoint", async () => {
    expect(await runOk(project, "cat", ".", "notes.md")).toBe("notes\n");
    expect(await runOk(project, "cat", ".:latest", "notes.md")).toBe("notes\n");
    expect(JSON.parse(await runOk(project, "status", ".", "--json")).missions).toHaveLength(1);
  });

  it("can be omitted before a path, a checkpoint or a time", async () => {
    const inside = join(project, "src");
    expect(await runOk(project, "cat", "notes.md")).toBe("notes\n");
    expect(await runOk(inside, "cat", "../notes.md")).toBe("notes\n");
    expect(await runOk(inside, "versions", "app.ts")).toContain("first seen");
    expect(await runOk(project, "find", "*.md")).toContain("worktree/notes.md");
    expect(await runOk(project, "grep", "notes")).toContain("worktree/notes.md:1:notes");
    expect(await runOk(project, "ls", "src")).toBe("worktree/src/app.ts\n");
    expect(await runOk(project, "ls", "latest", "src")).toBe("worktree/src/app.ts\n");
    expect(await runOk(project, "show", "latest")).toContain("first checkpoint");
    expect(await runOk(project, "diff", "0s")).toBe("");
    expect(await runOk(project, "set", "live", "9")).toContain("protect_within_seconds = 9");
    const { checkpoints } = JSON.parse(await runOk(project, "checkpoints", "--json"));
    await runOk(project, "pin", checkpoints[0].checkpoint_id);
    await runOk(project, "unpin", "latest");
  });

  it("is the named one if it exists, and an unknown checkpoint is not guessed", async () => {
    writeFileSync(join(project, "other"), "a file with the name of a mission\n");
    expect((await typed(project, "ls", "other")).stderr).toContain("other has no checkpoints");
    expect((await typed(project, "restore", "shpo")).stderr).toContain('shop has no checkpoint "shpo"');
    expect((await typed(project, "restore", "shop", "10m", "more")).stderr).toContain("unexpected argument");
    rmSync(join(project, "other"));
  });

  it("cannot be omitted elsewhere: the missing argument is named", async () => {
    const { exit, stderr } = await typed(world.cwd, "versions", "shop");
    expect([exit, stderr]).toEqual([2, expect.stringContaining("missing argument: path")]);
    expect((await typed(world.cwd, "cat")).stderr).toContain("missing argument: path");
    expect((await typed(world.cwd, "restore", "shpo")).stderr).toContain("did you mean shop?");
  });

  it("is found through a link to the directory", async () => {
    expect(await runOk(world.path("link"), "cat", ".", "notes.md")).toBe("notes\n");
  });

  it("is that of a cell when the command is typed inside the cell", async () => {
    const { missions } = JSON.parse(
      await runOk(join(world.missions, "other", "state"), "status", ".", "--json"),
    );
    expect(missions.map((each: { mission_id: string }) => each.mission_id)).toEqual(["other"]);
  });

  it("is unknown elsewhere, and the error says what to do", async () => {
    for (const directory of [world.cwd, world.missions]) {
      const { exit, stderr } = await typed(directory, "checkpoints");
      expect(exit).toBe(6);
      expect(stderr).toContain("belongs to no mission");
      expect(stderr).toContain("lazarus protect .");
    }
  });

  it("is never guessed by a command that creates one", async () => {
    expect((await typed(project, "init")).exit).toBe(2);
  });
});

describe("a path", () => {
  it("is relative to the current directory", async () => {
    expect(await runOk(join(project, "src"), "cat", ".", "app.ts")).toBe("app\n");
    expect(await runOk(join(project, "src"), "cat", ".", "../notes.md")).toBe("notes\n");
  });

  it("is relative to the worktree when typed elsewhere", async () => {
    expect(await runOk(world.cwd, "cat", "shop", "src/app.ts")).toBe("app\n");
  });

  it("is relative to the cell when it begins with one of the cell's directories, unless it begins with ./", async () => {
    expect(await runOk(project, "cat", ".", "worktree/src/app.ts")).toBe("app\n");
    expect((await typed(project, "cat", ".", "config/app.json")).stderr).toContain(
      "worktree/config/app.json",
    );
    expect(await runOk(project, "cat", ".", "./config/app.json")).toBe("{}\n");
  });

  it("outside the worktree and the cell is refused", async () => {
    expect((await typed(project, "cat", ".", "../other.txt")).exit).toBe(2);
  });

  it("of a restore is restored alone", async () => {
    writeFileSync(join(project, "src", "app.ts"), "changed\n");
    writeFileSync(join(project, "notes.md"), "changed\n");
    await runOk(join(project, "src"), "restore", ".", "--path", "app.ts");
    expect(await runOk(project, "diff", "--path", "src")).toBe("");
    expect(await runOk(project, "diff")).toContain("M worktree/notes.md");
  });
});
