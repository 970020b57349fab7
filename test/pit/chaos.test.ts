// 10 rounds of hostile agents and random kills; test/soak/chaos.test.ts has 300.
import { expect, test } from "vitest";
import { SEED } from "../seed.ts";
import { chaosRounds } from "./chaos-rounds.ts";

test("a harmless agent survives among hostile ones, and every guarantee holds", async ({ annotate }) => {
  const tally = await chaosRounds(10, SEED);
  await annotate(JSON.stringify(tally));
  expect(tally).toMatchObject({ overlaps: [], missingCheckpoints: [], hijacked: false, leftovers: 0 });
  expect(tally.lives).toBeGreaterThan(10);
});
