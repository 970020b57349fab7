import { expect, it } from "vitest";
import { BURST, CALM, nextPace } from "./burst.ts";

it("reads rarely while there are many events, and often again when there are few", () => {
  expect(nextPace(CALM, 3999)).toBe(CALM);
  expect(nextPace(CALM, 4000)).toBe(BURST);
  expect(nextPace(CALM, Number.POSITIVE_INFINITY)).toBe(BURST);
  expect(nextPace(BURST, 1000)).toBe(BURST);
  expect(nextPace(BURST, 999)).toBe(CALM);
});
