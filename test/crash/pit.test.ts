// Kill −9 of agent, keeper, pit and each pair, a few rounds of it; test/soak has 200.
import { expect, test } from "vitest";
import { findDoubles, killRounds } from "../pit/kill-rounds.ts";
import { SEED as seed } from "../seed.ts";

test("whoever is killed, the agent comes back: no orphan, no double, every crash with its checkpoint", async () => {
  const tally = await killRounds(10, seed);
  expect(tally).toMatchObject({ seed, doubles: [], orphans: [], unkept: [] });
  expect(tally.lives).toBeGreaterThanOrEqual(tally.crashes);
  expect(tally.revivals).toBeGreaterThanOrEqual(tally.crashes - tally.pitKills);
}, 600_000);

test("the judge sees a double when there is one", () => {
  expect(findDoubles("1 5\n2 6\n1 7\n")).toEqual(["1 wrote after 2 had begun"]);
  expect(findDoubles("1 5\n1 6\n2 7\n")).toEqual([]);
});
