// One recovery point: files, steps and conversation die together and come back together. 50 kills are in the soak.
import { expect, test } from "vitest";
import { SEED as seed } from "../seed.ts";
import { killAndCompare } from "./kill-rounds.ts";

test("files, flow and run of a killed agent agree, and a restore moves all three", {
  timeout: 600_000,
}, async () => {
  const recovery = await killAndCompare(3, seed);
  expect(recovery).toMatchObject({ silent: [], twice: [] });
  expect(recovery.scenes.length).toBeGreaterThan(0);
  expect(recovery.restored).toEqual(recovery.wanted);
  expect(recovery.undone).toEqual(recovery.end);
});
