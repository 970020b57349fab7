// The short version of test/soak/flow-exec-kills.test.ts: 8 kills instead of 1,000.
import { expect, it } from "vitest";
import { killAtRandom } from "./exec-kills.ts";

it("8 random kills of flow exec: every step exactly once, or reported unknown", async () => {
  const tally = await killAtRandom(8, 20261115);
  expect(tally.kills).toBe(8);
});
