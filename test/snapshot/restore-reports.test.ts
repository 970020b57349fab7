// Reports of a restore: what its undo covers, and everything that it could not do.

import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EffectHistory } from "../../src/effects/history.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import type { Progress } from "../../src/snapshot/mission-context.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { exportCheckpoint } from "../../src/snapshot/operations/export.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { previewRestore, restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { createWorld, openMission, type World } from "./restore-world.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const read = (name: string) => fs.readFileSync(world.path(name), "utf8");

describe("an undo", () => {
  it("of a restore of some paths reverts only those, and so does its redo", async () => {
    world.write("worktree/a", "then");
    world.write("worktree/b", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "before the restore");
    await restoreCell(world.context, { checkpoint: ref.id, paths: ["worktree/a"] });
    world.write("worktree/b", "work after the restore");
    world.write("worktree/c", "work after the restore");
    const { changes } = await undoRestore(world.context);
    expect([read("worktree/a"), read("worktree/b"), read("worktree/c")]).toEqual([
      "before the restore",
      "work after the restore",
      "work after the restore",
    ]);
    expect(changes).toMatchObject({ added: [], changed: ["worktree/a"], removed: [] });
    world.write("worktree/b", "later");
    await undoRestore(world.context);
    expect([read("worktree/a"), read("worktree/b")]).toEqual(["then", "later"]);
  });

  it("does not find an older restore after a removed cell was built again", async () => {
    world.write("worktree/a", "first");
    const first = await world.checkpoint();
    world.write("worktree/a", "second");
    const second = await world.checkpoint();
    await restoreCell(world.context, { checkpoint: first.ref.id });
    fs.rmSync(world.cell, { recursive: true });
    await restoreCell(world.context, { checkpoint: second.ref.id });
    await expect(undoRestore(world.context)).rejects.toMatchObject({ code: "NOTHING_TO_UNDO" });
    expect(read("worktree/a")).toBe("second");
    // A restore after that can be undone as usual.
    await restoreCell(world.context, { checkpoint: first.ref.id });
    await undoRestore(world.context);
    expect(read("worktree/a")).toBe("second");
  });
});

describe("a restore", () => {
  it("names the paths that its checkpoint had skipped, and so do a fork and an export", async () => {
    const server = net.createServer();
    world.write("worktree/sub/file", "1");
    server.listen(world.path("worktree/sub/socket"));
    await once(server, "listening");
    const { ref } = await world.checkpoint();
    server.close();
    await once(server, "close");
    const expected = [{ path: "worktree/sub/socket", kind: "skipped", reason: "a socket" }];
    expect((await previewRestore(world.context, { checkpoint: ref.id })).notSaved).toEqual(expected);
    expect((await restoreCell(world.context, { checkpoint: ref.id })).notSaved).toEqual(expected);
    const outside = { checkpoint: ref.id, paths: ["worktree/sub/file"] };
    expect((await restoreCell(world.context, outside)).notSaved).toEqual([]);
    const directory = `${world.directory}/copy`;
    expect((await restoreTo(world.context, { checkpoint: ref.id, directory })).notSaved).toEqual(expected);
    const fork = openMission(world.directory, "fork");
    expect((await forkMission(world.context, fork, { at: ref.id })).notSaved).toEqual(expected);
    expect((await exportCheckpoint(world.context, ref, () => {})).notSaved).toEqual(expected);
  });

  it("of one hard link reports that it splits the group", async () => {
    world.write("worktree/a", "linked");
    fs.linkSync(world.path("worktree/a"), world.path("worktree/b"));
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "changed through both names");
    const one = { checkpoint: ref.id, paths: ["worktree/a"] };
    const expected = [
      { path: "worktree/a", kind: "degraded", reason: expect.stringContaining("hard link of worktree/b") },
    ];
    expect((await previewRestore(world.context, one)).flaws).toEqual(expected);
    expect((await restoreCell(world.context, one)).flaws).toEqual(expected);
    expect([read("worktree/a"), read("worktree/b")]).toEqual(["linked", "changed through both names"]);
    const both = { checkpoint: ref.id, paths: ["worktree/a", "worktree/b"] };
    expect((await restoreCell(world.context, both)).flaws).toEqual([]);
    expect(fs.statSync(world.path("worktree/a")).ino).toBe(fs.statSync(world.path("worktree/b")).ino);
  });

  it("reports a damaged journal as damage, once", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "now");
    fs.writeFileSync(world.context.vault.journalFile, '{"lazarus-restore":1,"cut off');
    const error = await world.checkpoint().catch((each) => each);
    expect(error).toMatchObject({ code: "CELL_DAMAGED", exitCode: 8 });
    expect(error.message).toContain("half restored");
    expect(error.message).toContain("restore-journal.json.damaged");
    expect(error.hint).toContain("lazarus restore m");
    expect((await restoreCell(world.context, { checkpoint: ref.id })).finished).toBeUndefined();
    expect(read("worktree/a")).toBe("then");
  });
});

describe("an effect history that cannot be written", () => {
  it("aborts the restore before it changes anything, and later checkpoints work", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "now");
    world.context.effects.append({ source: "once", state: "done", id: "sent", attempt: 1 });
    let isFull = true;
    const full = {
      ...world.context,
      effects: {
        ...world.context.effects,
        append: ((...lines) => {
          if (isFull) throw new LazarusError("DISK_FULL", "writing the effect history: no space left");
          world.context.effects.append(...lines);
        }) as EffectHistory["append"],
      },
    };
    await expect(restoreCell(full, { checkpoint: ref.id })).rejects.toMatchObject({
      code: "DISK_FULL",
      message: expect.stringContaining("the cell was not touched"),
      hint: expect.stringContaining("--to DIR"),
    });
    expect(fs.existsSync(world.context.vault.journalFile)).toBe(false);
    expect(world.siblings().filter((name) => name !== ".lazarus-effects")).toEqual([]);
    world.write("worktree/a", "later");
    await takeCheckpoint(full, { reason: "manual", message: null });
    expect(read("worktree/a")).toBe("later");
    isFull = false;
    await restoreCell(full, { checkpoint: ref.id });
    expect(read("worktree/a")).toBe("then");
  });

  it("is not reported as an untouched cell while an interrupted restore is being finished", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "now");
    world.context.effects.append({ source: "once", state: "done", id: "sent", attempt: 1 });
    const append = (): never => {
      throw new LazarusError("DISK_FULL", "writing the effect history: no space left");
    };
    const interrupted = { ...world.context, onProgress: stopRestoring };
    await expect(restoreCell(interrupted, { checkpoint: ref.id })).rejects.toThrow();
    expect(fs.existsSync(world.context.vault.journalFile)).toBe(true);
    const full = { ...world.context, effects: { ...world.context.effects, append } };
    const failure = await restoreCell(full, { checkpoint: ref.id }).catch((error) => error);
    expect(failure.message).toContain("the restore is incomplete");
    expect(failure.message).not.toContain("not touched");
  });
});

function stopRestoring({ phase }: Progress): void {
  if (phase === "restoring") throw new Error("interrupted");
}
