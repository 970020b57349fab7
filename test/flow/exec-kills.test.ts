// The short version of test/soak/flow-exec-kills.test.ts: 25 kills instead of 1,000.
import { expect, it } from "vitest";
import { killAtRandom } from "./exec-kills.ts";

it("25 random kills of flow exec: every step exactly once, or reported unknown", {
  timeout: 180_000,
}, async () => {
  const tally = await killAtRandom(25, 20261115);
  expect(tally.kills).toBe(25);
});
