// 200 rounds of random changes under the real watcher, and 100 under live points, and a burst of new files. A failure names
// its seed: `LAZARUS_SEED=<n>` replays it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createBurst, createLiveLab } from "../pit/live-lab.ts";
import { liveRound } from "../pit/live-rounds.ts";
import { watchRound } from "../pit/watch-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 200);

it(`${ROUNDS} rounds of changes from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + ROUNDS; seed += 1) await watchRound(seed);
});

it(`${ROUNDS / 2} rounds of live points from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + ROUNDS / 2; seed += 1) await liveRound(seed);
});

it("50,000 files that are created in a burst", { timeout: 7_200_000 }, async () => {
  await using lab = await createLiveLab();
  createBurst(lab.worktree, 50_000);
  await lab.point();
  expect(await lab.differences()).toEqual([]);
  writeFileSync(join(lab.worktree, "many/49900/49999"), "changed");
  await lab.point();
  expect(lab.lastSet.unknown).toBe(null);
  expect(await lab.differences()).toEqual([]);
});
