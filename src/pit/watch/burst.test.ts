import { expect, it } from "vitest";
import { BURST, CALM, nextPace } from "./burst.ts";

it("reads rarely while there are many events, and often again when there are few", () => {
  expect(nextPace(CALM, 3999)).toBe(CALM);
  expect(nextPace(CALM, 4000)).toBe(BURST);
  expect(nextPace(CALM, Number.POSITIVE_INFINITY)).toBe(BURST);
  expect(nextPace(BURST, 1000)).toBe(BURST);
  expect(nextPace(BURST, 999)).toBe(CALM);
});

it("reads less often while nothing happens, at least four times a second, and often again after the first event", () => {
  let pace = CALM;
  const waits: number[] = [];
  for (let read = 0; read < 30; read += 1) {
    pace = nextPace(pace, 0);
    waits.push(pace.waitMs);
  }
  expect(waits[0]).toBe(110);
  expect(waits).toEqual([...waits].sort((a, b) => a - b));
  expect(waits.at(-1)).toBe(250);
  expect(nextPace(pace, 1)).toBe(CALM);
  expect(nextPace(pace, 4000)).toBe(BURST);
  expect(nextPace(BURST, 0)).toBe(CALM);
});
