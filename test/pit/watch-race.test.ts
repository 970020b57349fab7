// Ten rounds of random changes under the real watcher; test/soak has 200 with new seeds.
import { it } from "vitest";
import { SEED } from "../seed.ts";
import { watchRound } from "./watch-rounds.ts";

it.skipIf(process.platform !== "linux")("names everything that changes at random", async () => {
  for (let seed = SEED; seed < SEED + 10; seed += 1) await watchRound(seed);
});
