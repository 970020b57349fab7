// Files, flow steps and conversation of a killed agent are recovered together. The soak test does 50 kills.
import { expect, test } from "vitest";
import { SEED as seed } from "../seed.ts";
import { killAndCompare } from "./kill-rounds.ts";

test("files, flow and run of a killed agent agree, and a restore moves all three", {
  timeout: 600_000,
}, async () => {
  const recovery = await killAndCompare(3, seed);
  expect(recovery).toMatchObject({ disagreements: [], repeated: [] });
  expect(recovery.crashStates.length).toBeGreaterThan(0);
  expect(recovery.restored).toEqual(recovery.wanted);
  expect(recovery.undone).toEqual(recovery.end);
});
