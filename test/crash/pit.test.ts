// A few rounds of kill -9 on agent, keeper, pit and each pair; test/soak runs 200.
import { expect, test } from "vitest";
import { findOverlaps, killRounds } from "../pit/kill-rounds.ts";
import { SEED as seed } from "../seed.ts";

test("revives after killing agent, keeper or pit: no orphan, no overlap, a checkpoint per crash", async () => {
  const tally = await killRounds(10, seed);
  expect(tally).toMatchObject({ seed, overlaps: [], orphans: [], missingCheckpoints: [] });
  expect(tally.lives).toBeGreaterThanOrEqual(tally.crashes);
  expect(tally.revivals).toBeGreaterThanOrEqual(tally.crashes - tally.pitKills);
}, 600_000);

test("overlapping lives are detected", () => {
  expect(findOverlaps("1 5\n2 6\n1 7\n")).toEqual(["1 wrote after 2 had started"]);
  expect(findOverlaps("1 5\n1 6\n2 7\n")).toEqual([]);
});
