// Changes a cell without pause until SIGTERM, which lets a git command finish. Arguments: the directory around the worktree,
// the cell, the worktree, seed.
import { writeSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { createRandom } from "../../src/testing/index.ts";
import { INSIDE, mutate, raceTree } from "./race-mutations.ts";

const [directory = "", cell = "", worktree = "", seed = "1"] = process.argv.slice(2);
const tree = raceTree(directory, cell, worktree);
const random = createRandom(Number(seed));
let isStopped = false;
process.once("SIGTERM", () => {
  isStopped = true;
});
writeSync(1, "ready\n");
while (!isStopped) {
  mutate(tree, random, INSIDE);
  await setImmediate();
}
