// Restore in place on a real file system: afterwards the cell equals the captured one, compared by independent code.
import fs from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { createWorld, differences, recordTree, type World } from "./restore-world.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const read = (name: string) => fs.readFileSync(world.path(name), "utf8");

describe("restore in place", () => {
  it("restores content, modes, times, links and empty directories, and removes newer files", async () => {
    world.write("worktree/a.txt", "first");
    world.write("worktree/sub/b.txt", "stays");
    fs.chmodSync(world.path("worktree/a.txt"), 0o751);
    fs.utimesSync(world.path("worktree/a.txt"), 1_000_000_000, 1_111_111_111.25);
    fs.symlinkSync("a.txt", world.path("worktree/link"));
    fs.linkSync(world.path("worktree/a.txt"), world.path("worktree/hard"));
    fs.mkdirSync(world.path("worktree/empty"));
    const before = recordTree(world.cell);
    const { ref } = await world.checkpoint();

    world.write("worktree/a.txt", "second, longer");
    fs.rmSync(world.path("worktree/link"));
    fs.rmSync(world.path("worktree/hard"));
    fs.rmdirSync(world.path("worktree/empty"));
    world.write("worktree/new/deep/file", "later");
    fs.chmodSync(world.path("worktree/sub/b.txt"), 0o600);
    const changed = recordTree(world.cell);

    const result = await restoreCell(world.context, { checkpoint: ref.id });
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(result.flaws).toEqual([]);
    expect(result.changes.added).toEqual(["worktree/empty", "worktree/hard", "worktree/link"]);
    expect(result.changes.changed).toEqual(["worktree/a.txt"]);
    expect(result.changes.removed).toEqual(["worktree/new", "worktree/new/deep", "worktree/new/deep/file"]);
    expect(result.changes.metadata).toContain("worktree/sub/b.txt");
    expect(world.siblings()).toEqual([]);

    const undone = await undoRestore(world.context);
    expect(undone.target.id).toBe(result.safety!.id);
    expect(undone.undone).toBe(ref.id);
    expect(differences(changed, recordTree(world.cell))).toEqual([]);
    await undoRestore(world.context);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
  });

  it("does not touch paths that do not differ", async () => {
    world.write("worktree/same", "same");
    world.write("worktree/other", "1");
    await world.checkpoint();
    world.write("worktree/other", "2");
    const inode = fs.statSync(world.path("worktree/same")).ino;
    const ctime = fs.statSync(world.path("worktree/same")).ctimeMs;
    await restoreCell(world.context, {});
    expect(read("worktree/other")).toBe("1");
    expect(fs.statSync(world.path("worktree/same"))).toMatchObject({ ino: inode, ctimeMs: ctime });
  });
});
