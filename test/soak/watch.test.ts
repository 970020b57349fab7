// 200 rounds of random changes under the real watcher, and 100 under live points. A failure names its seed: `LAZARUS_SEED=<n>`
// replays it.
import { it } from "vitest";
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
