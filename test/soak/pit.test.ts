// 200 rounds of kill -9 on agent, keeper, pit and each pair.
import { expect, test } from "vitest";
import { killRounds } from "../pit/kill-rounds.ts";

test("revives after 200 rounds of kills", async () => {
  const seed = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
  const tally = await killRounds(Number(process.env.LAZARUS_ROUNDS ?? 200), seed);
  process.stderr.write(`${JSON.stringify(tally)}\n`);
  expect(tally).toMatchObject({ seed, overlaps: [], orphans: [], missingCheckpoints: [] });
  expect(tally.lives).toBeGreaterThanOrEqual(tally.crashes);
  expect(tally.revivals).toBeGreaterThanOrEqual(tally.crashes - tally.pitKills);
});
