// 50 kills of an agent with files, a flow and a run.
import { expect, test } from "vitest";
import { killAndCompare } from "../recovery/kill-rounds.ts";

test("files, flow and run agree after 50 kills", async () => {
  const seed = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
  const { crashStates, output, ...recovery } = await killAndCompare(
    Number(process.env.LAZARUS_ROUNDS ?? 50),
    seed,
  );
  process.stderr.write(`${JSON.stringify({ ...recovery, crashStates: crashStates.length })}\n${output}`);
  expect(recovery).toMatchObject({ seed, disagreements: [], repeated: [] });
  expect(recovery.restored).toEqual(recovery.wanted);
  expect(recovery.undone).toEqual(recovery.end);
});
