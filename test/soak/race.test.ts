// 500 rounds of the race harness of test/snapshot/race.test.ts. A failure names its seed: `LAZARUS_SEED=<n>` replays it.
import { it } from "vitest";
import { liveRace, plannedRace, plannedRestore } from "../snapshot/race-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 500);

it(`${ROUNDS} races from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + ROUNDS; seed += 1) {
    if (seed % 10 < 6) await plannedRace(seed, 3);
    else if (seed % 10 < 9) await plannedRestore(seed);
    else await liveRace(seed, 4);
  }
});
