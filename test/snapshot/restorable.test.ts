// Checkpoints that earlier versions could take but not restore. Each case takes checkpoints of an unusual cell and restores
// all of them.
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createLab, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";
import { canList } from "./real-cell.ts";

it.skipIf(!canList())("a table of contents that compresses extremely well can be read back", async () => {
  using lab = createLab();
  const deep = join(lab.worktree, ...Array.from({ length: 1000 }, () => "d"));
  fs.mkdirSync(deep, { recursive: true });
  const { ref: first } = await lab.checkpoint();
  const full = listTree(lab.cell);
  fs.rmSync(join(lab.worktree, "d"), { recursive: true });
  // A layer of removals compresses even better.
  const { ref: second } = await lab.checkpoint();
  const empty = listTree(lab.cell);
  for (const [{ id }, tree] of [[first, full] as const, [second, empty] as const]) {
    const directory = await lab.restored(id);
    expect(listTree(directory)).toEqual(tree);
    removeTree(directory);
  }
  await lab.verify();
});
