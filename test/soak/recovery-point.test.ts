// 50 kills of an agent that lives in three places.
import { expect, test } from "vitest";
import { killAndCompare } from "../recovery/kill-rounds.ts";

test("50 kills", async () => {
  const seed = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
  const { scenes, said, ...recovery } = await killAndCompare(Number(process.env.LAZARUS_ROUNDS ?? 50), seed);
  process.stderr.write(`${JSON.stringify({ ...recovery, scenes: scenes.length })}\n${said}`);
  expect(recovery).toMatchObject({ seed, silent: [], twice: [] });
  expect(recovery.restored).toEqual(recovery.wanted);
  expect(recovery.undone).toEqual(recovery.end);
});
