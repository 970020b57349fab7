// 300 rounds of hostile agents and random kills.
import { expect, test } from "vitest";
import { chaosRounds } from "../pit/chaos-rounds.ts";

test("a harmless agent survives among hostile ones for 300 rounds", { timeout: 3_600_000 }, async () => {
  const seed = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
  const tally = await chaosRounds(Number(process.env.LAZARUS_ROUNDS ?? 300), seed);
  process.stderr.write(`${JSON.stringify(tally)}\n`);
  expect(tally).toMatchObject({ seed, overlaps: [], missingCheckpoints: [], hijacked: false, leftovers: 0 });
  expect(tally.slowestMs).toBeLessThanOrEqual(3000);
  // Live objects stay at 20 MiB, but V8 keeps the heap it once took: about 290 MiB after 100 rounds without a restart.
  expect(tally.pitMib.last).toBeLessThanOrEqual(400);
});
