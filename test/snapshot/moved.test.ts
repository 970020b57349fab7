// Checkpoints of a cell whose paths are moved or replaced while it is captured. The changes happen at exact moments; the
// race harness (race.test.ts) makes the same changes at random ones.
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { TICK_MS } from "../../src/snapshot/pack/torn.ts";
import { createLab, type Lab, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";
import { beforeReading, beforeStat, racingDisk } from "./race-moments.ts";
import { canList } from "./real-cell.ts";

const canCompare = canList();

/** A checkpoint during which `act` runs after the walk. */
function whilePacking(lab: Lab, act: () => void) {
  return lab.with({ machine: { disk: racingDisk({ beforePacking: act }) } }).checkpoint();
}

async function expectExact(lab: Lab, id: string): Promise<void> {
  const directory = await lab.restored(id);
  if (canCompare) expect(listTree(directory)).toEqual(listTree(lab.cell));
  else expect(fs.readdirSync(join(directory, "worktree"))).toEqual(fs.readdirSync(lab.worktree));
  removeTree(directory);
}

function write(lab: Lab, path: string, content = path): void {
  const file = join(lab.worktree, path);
  fs.mkdirSync(join(file, ".."), { recursive: true });
  fs.writeFileSync(file, content);
}

describe("a directory replaced by a link to its new place", () => {
  const swap = (lab: Lab) => () => {
    fs.renameSync(join(lab.worktree, "z"), join(lab.worktree, "z.moved"));
    fs.symlinkSync("z.moved", join(lab.worktree, "z"));
  };

  it("in a first checkpoint, is captured in its new state", async () => {
    using lab = createLab();
    for (const name of ["z/a", "z/b", "other"]) write(lab, name);
    const { ref, flaws } = await whilePacking(lab, swap(lab));
    expect(flaws).toEqual([]);
    await expectExact(lab, ref.id);
    await lab.verify();
  });

  it("with known and new files in it, leaves this and all later checkpoints restorable", async () => {
    using lab = createLab();
    for (const name of ["z/known", "z/deep/er", "other"]) write(lab, name);
    const { ref: old } = await lab.checkpoint();
    const before = canCompare ? listTree(lab.cell) : [];
    write(lab, "z/new");
    write(lab, "z/deep/new");
    const ids = [(await whilePacking(lab, swap(lab))).ref.id];
    for (const name of ["later", "last"]) {
      write(lab, name);
      ids.push((await lab.checkpoint()).ref.id);
    }
    for (const id of ids) removeTree(await lab.restored(id));
    await expectExact(lab, ids.at(-1)!);
    await lab.verify();
    const after = canCompare ? listTree(lab.cell) : [];
    await restoreCell(lab.context, { checkpoint: old.id });
    if (canCompare) expect(listTree(lab.cell)).toEqual(before);
    await undoRestore(lab.context);
    if (canCompare) expect(listTree(lab.cell)).toEqual(after);
  });
});

describe("a path moved during the capture", () => {
  // The order in which the walk reads directories is not fixed: in one of the two directions the new place was already read.
  for (const [from, to] of [["a", "b"] as const, ["b", "a"] as const]) {
    it(`from ${from} to ${to} by the walk, is in a first and a later checkpoint under its new name`, async () => {
      using lab = createLab();
      const at = (path: string) => join(lab.worktree, path);
      for (const name of ["1", "2"]) {
        for (const path of [`file${name}`, `moved${name}`, `directory${name}/deep/inside`]) {
          write(lab, `${from}/${path}`);
          write(lab, `${to}/quiet${name}`);
        }
        const { ref, flaws } = await beforeReading(at(from), lab.checkpoint, () => {
          for (const path of [`moved${name}`, `directory${name}`])
            fs.renameSync(at(`${from}/${path}`), at(`${to}/${path}`));
        });
        expect(flaws).toEqual([]);
        await expectExact(lab, ref.id);
      }
      await lab.verify();
    });
  }

  it("between walk and packing, is in a first and a later checkpoint under its new name", async () => {
    using lab = createLab();
    for (const name of ["a/one", "a/two", "b/file"]) write(lab, name);
    for (const name of ["one", "two"]) {
      const { ref, flaws } = await whilePacking(lab, () =>
        fs.renameSync(join(lab.worktree, "a", name), join(lab.worktree, "b", name)),
      );
      expect(flaws).toEqual([]);
      await expectExact(lab, ref.id);
      write(lab, "a/two", "changed");
    }
  });

  it("over another file, leaves the content of the moved one in the checkpoint", async () => {
    using lab = createLab();
    for (const name of ["a/draft", "b/final"]) write(lab, name);
    await lab.checkpoint();
    write(lab, "a/draft", "the new content");
    const { ref, flaws } = await whilePacking(lab, () =>
      fs.renameSync(join(lab.worktree, "a/draft"), join(lab.worktree, "b/final")),
    );
    expect(flaws).toEqual([]);
    expect(lab.text("worktree/b/final", ref.id)).toBe("the new content");
    await expectExact(lab, ref.id);
  });

  it("with a directory that was found unchanged, is in the checkpoint under its new name", async () => {
    using lab = createLab();
    for (const name of ["a/sub/inside", "a/sub/deep/inside", "b/file"]) write(lab, name);
    const at = (path: string) => join(lab.worktree, path);
    // A directory that changed a tick ago is read again, regardless of its stat.
    await vi.waitUntil(() => Date.now() > fs.statSync(at("a/sub")).ctimeMs + 2 * TICK_MS);
    await lab.checkpoint();
    const { ref, flaws } = await beforeStat("worktree/a/sub/inside", lab.checkpoint, () =>
      fs.renameSync(at("a/sub"), at("b/sub")),
    );
    expect(flaws).toEqual([]);
    await expectExact(lab, ref.id);
  });

  it("with a directory while it is read, is in the checkpoint under its new name", async () => {
    using lab = createLab();
    for (const name of ["a/sub/inside", "a/sub/other", "b/file"]) write(lab, name);
    const at = (path: string) => join(lab.worktree, path);
    await lab.checkpoint();
    write(lab, "a/sub/new");
    const { ref, flaws } = await beforeStat("worktree/a/sub/inside", lab.checkpoint, () =>
      fs.renameSync(at("a/sub"), at("b/sub")),
    );
    expect(flaws).toEqual([]);
    await expectExact(lab, ref.id);
  });

  it("is not stored under both names", async () => {
    using lab = createLab();
    for (const name of ["a/moved", "a/directory/inside", "b/file"]) write(lab, name);
    const at = (path: string) => join(lab.worktree, path);
    await lab.checkpoint();
    write(lab, "b/new");
    // What is in a/ was already found unchanged.
    const { ref, flaws } = await beforeReading(at("b"), lab.checkpoint, () => {
      for (const name of ["moved", "directory"]) fs.renameSync(at(`a/${name}`), at(`b/${name}`));
    });
    expect(flaws).toEqual([]);
    await expectExact(lab, ref.id);
  });

  it("in every round, is reported as a flaw", async () => {
    using lab = createLab();
    write(lab, "a/file");
    write(lab, "b/other");
    let from = "a";
    const disk = racingDisk({});
    // Before each layer of the capture, the file moves to the other directory.
    const busy = lab.with({
      machine: {
        disk: {
          ...disk,
          create(path, mode) {
            if (/\/scratch\/layer$/.test(String(path))) {
              const to = from === "a" ? "b" : "a";
              fs.renameSync(join(lab.worktree, from, "file"), join(lab.worktree, to, "file"));
              from = to;
            }
            return disk.create(path, mode);
          },
        },
      },
    });
    const { ref, flaws } = await busy.checkpoint();
    removeTree(await lab.restored(ref.id));
    const held = ["a", "b"].filter((name) => lab.listing(ref.id).has(`worktree/${name}/file`));
    if (!held.includes(from)) expect(flaws.map(({ path }) => path)).toContain(`worktree/${from}/file`);
    else expect(held).toEqual([from]);
    expect((await lab.checkpoint()).flaws).toEqual([]);
    await expectExact(lab, lab.context.vault.list().at(-1)!.id);
  });
});
