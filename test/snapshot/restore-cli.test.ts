// restore, undo, fork and drill on the command line: exit codes, stdout and stderr.
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "../cli/hermetic.ts";

let world: World;
let first: string;
beforeEach(async () => {
  world = createWorld();
  await world.call(["init", "m"]);
  world.write("home/missions/m/worktree/a", "then\n");
  first = (await world.call(["checkpoint", "m", "-m", "the first"])).stdout.trim();
  world.write("home/missions/m/worktree/a", "now\n");
  world.write("home/missions/m/worktree/b", "now\n");
});
afterEach(() => world[Symbol.dispose]());

const file = () => world.read("home/missions/m/worktree/a");
const ids = (text: string) =>
  text.replaceAll(/\d{8}-\d{6}-[0-9a-z]{6}/g, "<id>").replaceAll(/@other-\w{6}/g, "@<identity>");

describe("restore", () => {
  it("previews, restores, and prints how to undo and redo", async () => {
    expect(ids(world.show("restore m --dry-run"))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      restoring m to <id> (<time>, manual: the first) would change
        changed 1
          ~ worktree/a
        metadata 1
          · worktree
        removed 1
          - worktree/b
      ── stderr
      nothing was changed; to restore: lazarus restore m <id>
      "
    `);
    expect(file()).toBe("now\n");
    expect(ids(world.show(`restore m ${first}`))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      restored m to <id> (<time>, manual: the first)
        changed 1
          ~ worktree/a
        metadata 1
          · worktree
        removed 1
          - worktree/b
      ── stderr
      the previous state is saved as <id>; to undo: lazarus undo m
      "
    `);
    expect(file()).toBe("then\n");
    expect(ids(world.show("undo m"))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      undid the restore of <id>: m is back at <id> (<time>, pre-restore: before restoring <id>)
        added 1
          + worktree/b
        changed 1
          ~ worktree/a
        metadata 1
          · worktree
      ── stderr
      to redo: lazarus undo m, or lazarus restore m <id>
      "
    `);
    expect(file()).toBe("now\n");
    expect((await world.call(["undo", "m", "--json"])).exit).toBe(0);
    expect(file()).toBe("then\n");
    const kinds = (await world.call(["events", "m"])).stdout.match(/(?<=Z {2})\w+/g);
    expect(kinds).toEqual(["init", "checkpoint", "restore", "undo", "undo"]);
  });

  it("prints one JSON document with all paths", () => {
    const document = world.json(`restore m ${first.slice(0, 15)} --json`);
    expect(document).toMatchObject({
      schema: "lazarus.restore/1",
      mission_id: "m",
      checkpoint_id: first,
      dry_run: false,
      changed: ["worktree/a"],
      removed: ["worktree/b"],
      kept: [],
      flaws: [],
      agent_may_be_alive: false,
      finished_first: null,
    });
    expect(document.safety_checkpoint_id).toMatch(/^\d{8}-/);
  });

  it("warns when an agent may be running, and continues", async () => {
    world.run(["heartbeat", "m", "--status", "working"]);
    const { exit, stderr } = await world.call(["restore", "m"]);
    expect(exit).toBe(0);
    expect(stderr).toContain("an agent may be running in m: its heartbeat (working) is");
    expect(file()).toBe("then\n");
  });

  it("restores into a directory with the bundled workers, and refuses one that is not empty", async () => {
    // Of a size that makes three batches.
    for (const name of "123") world.write(`home/missions/m/worktree/large/${name}`, name.repeat(9_000_000));
    await world.call(["checkpoint", "m"]);
    const there = join(world.cwd, "there");
    const { exit, stdout, stderr } = await world.call(["restore", "m", "--to", "there"]);
    expect([exit, stdout]).toEqual([0, `${there}\n`]);
    // Of the workers, Node could warn on stderr.
    expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("restored "))).toEqual([]);
    expect(fs.readFileSync(join(there, "worktree/large/3"), "utf8") === "3".repeat(9_000_000)).toBe(true);
    expect(await world.call(["restore", "m", "--to", "there"])).toMatchObject({ exit: 7 });
    expect(await world.call(["restore", "m", "--to", "there", "--dry-run"])).toMatchObject({ exit: 2 });
    expect(await world.call(["restore", "m", "2001-01-01"])).toMatchObject({ exit: 6 });
  });
});

describe("fork and drill", () => {
  it("create a mission, and prove a checkpoint", async () => {
    expect(ids(world.show(`fork m other --at ${first}`))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/other
      ── stderr
      other is a fork of m at <id> (<time>, manual: the first); first checkpoint: <id>
      it has a copy of the effect history of m, and its own identity: the keys of its tool calls end in @<identity>
      "
    `);
    expect(world.read("home/missions/other/worktree/a")).toBe("then\n");
    expect(await world.call(["fork", "m", "other"])).toMatchObject({ exit: 7 });
    // Sizes vary with the number of digits in the timestamps that the files contain.
    const drilled = ids(world.show("drill other")).replace(/\d+ B/, "<size>");
    expect(drilled).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      proven: <id> (<time>, fork: fork of m at <id>)
      ── stderr
      12 paths, <size> restored and compared
      "
    `);
    expect(world.json("drill m --json")).toMatchObject({
      schema: "lazarus.drill/1",
      proven: true,
      differences: [],
    });
    expect(await world.call(["undo", "other"])).toMatchObject({ exit: 6 });
  });
});
