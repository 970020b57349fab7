// One run of the property "a checkpoint from a dirty set is the one that a walk would make", from a seed: edit a hostile tree,
// take a checkpoint of what changed, then hash the whole cell and compare.
import fs from "node:fs";
import { expect } from "vitest";
import { statStoreFile } from "../../src/snapshot/scan/stat-store.ts";
import { createRandom } from "../../src/testing/index.ts";
import { asReported, dirtySince, momentOf, withNoise } from "./dirty-set.ts";
import { createHostileTree } from "./hostile-tree.ts";
import { createLab, type Lab, listCell, OLD_MS, removeTree } from "./lab.ts";
import { listTree } from "./list-tree.ts";

const SIZE = 40;
const ROUNDS = 5;
const EDITS = 12;

export async function runDirtyProperty(seed: number, outside?: string): Promise<void> {
  const random = createRandom(seed);
  using lab = createLab({
    aheadMs: random.pick([0, OLD_MS]),
    ...(outside === undefined ? {} : { outside }),
  });
  const tree = createHostileTree(lab.worktree, random, { maxBytes: 5000 });
  for (let i = 0; i < SIZE; i += 1) tree.add();
  let then = momentOf(lab);
  await lab.checkpoint({ git: false });
  for (let round = 0; round < ROUNDS; round += 1) {
    const edits = random.pick([0, 1, EDITS]);
    for (let i = 0; i < edits; i += 1) tree.edit();
    const now = momentOf(lab);
    const exact = dirtySince(then, now);
    const dirty = withNoise(random.chance(0.5) ? exact : asReported(exact, then, now), now, random);
    then = now;
    const taken = await lab.checkpoint({ git: false, dirty });
    const where = `seed ${seed}, round ${round}`;
    expect(taken.flaws, where).toEqual([]);
    const directory = await lab.restored(taken.ref.id);
    expect(listTree(directory), where).toEqual(listCell(lab));
    removeTree(directory);
    const walked = await hashEverything(lab);
    const changed = walked.checkpoint.metadata.counts;
    expect([walked.outcome, walked.ref.manifest], `${where}: ${JSON.stringify(changed)}`).toEqual([
      "unchanged",
      taken.ref.manifest,
    ]);
  }
  await lab.verify();
}

/** A checkpoint without the stat store, which compares every file with the newest one. The store is put back. */
async function hashEverything(lab: Lab) {
  const file = statStoreFile(lab.context.cacheDirectory);
  const kept = fs.readFileSync(file);
  fs.rmSync(file);
  const result = await lab.checkpoint({ git: false });
  fs.writeFileSync(file, kept);
  return result;
}
