// Changes a cell without pause until it is killed. Arguments: worktree, outside, elsewhere, seed.
import { writeSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { createRandom } from "../../src/testing/index.ts";
import { INSIDE, mutate } from "./race-mutations.ts";

const [root = "", outside = "", elsewhere = "", seed = "1"] = process.argv.slice(2);
const random = createRandom(Number(seed));
writeSync(1, "ready\n");
for (;;) {
  mutate({ root, outside, elsewhere }, random, INSIDE);
  await setImmediate();
}
