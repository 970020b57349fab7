// Three rounds of random changes under live points; test/soak has 100 with new seeds.
import { expect, it } from "vitest";
import { SEED } from "../seed.ts";
import { liveRound } from "./live-rounds.ts";

it("live points equal the cell after random changes", async () => {
  let fromSets = 0;
  for (let seed = SEED; seed < SEED + 3; seed += 1) fromSets += await liveRound(seed);
  expect(fromSets).toBeGreaterThan(0);
});
