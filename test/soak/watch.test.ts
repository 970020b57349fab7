// 200 rounds of random changes under the real watcher. A failure names its seed: `LAZARUS_SEED=<n>` replays it.
import { it } from "vitest";
import { watchRound } from "../pit/watch-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 200);

it(`${ROUNDS} rounds of changes from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + ROUNDS; seed += 1) await watchRound(seed);
});
