import { describe, expect, test } from "vitest";
import { judgeStall, lookEveryMs, observe, regrace, sleptMs, startClocks, wasSetBack } from "./stall.ts";

const limits = { stallSeconds: 60, progressSeconds: null };
const born = startClocks({ activity: 1, progress: 1 }, 0);

describe("a stall", () => {
  test("is silence past the limit", () => {
    expect(judgeStall(born, limits, 60_000)).toBeUndefined();
    expect(judgeStall(born, limits, 61_000)).toContain("for 61 s (limit 60 s)");
  });
  test("is put off by any activity", () => {
    const active = observe(born, { activity: 2, progress: 1 }, 50_000);
    expect(judgeStall(active, limits, 100_000)).toBeUndefined();
  });
  test("is put off by progress, too", () => {
    const moved = observe(born, { activity: 1, progress: 2 }, 50_000);
    expect(judgeStall(moved, limits, 100_000)).toBeUndefined();
  });
  test("never happens without a limit", () => {
    expect(judgeStall(born, { stallSeconds: null, progressSeconds: null }, 1e12)).toBeUndefined();
  });
  test("of progress is seen although output goes on", () => {
    const chatty = observe(born, { activity: 99, progress: 1 }, 999_000);
    expect(judgeStall(chatty, { stallSeconds: 60, progressSeconds: 600 }, 1_000_000)).toContain(
      "no flow or run",
    );
  });
  test("begins anew after the host slept", () => {
    expect(judgeStall(regrace(born, 70_000), limits, 100_000)).toBeUndefined();
  });
  test("a sign that goes back, as after a clock was set, is activity as well", () => {
    expect(observe(born, { activity: -5, progress: 1 }, 7).activeMs).toBe(7);
  });
});

test.each([
  [{ stallSeconds: null, progressSeconds: null }, undefined],
  [{ stallSeconds: 1, progressSeconds: null }, 250],
  [{ stallSeconds: 4, progressSeconds: 100 }, 1000],
  [{ stallSeconds: 3600, progressSeconds: null }, 5000],
])("%o is looked at every %s ms", (given, every) => {
  expect(lookEveryMs(given)).toBe(every);
});

test.each([
  ["a busy second", 1000, 1000, 0, false],
  ["a night", 8 * 3_600_000, 1000, 8 * 3_600_000 - 1000, false],
  ["a small correction of the time", 2000, 1000, 0, false],
  ["a small correction back", -2000, 1000, 0, false],
  ["a clock set back", -3_600_000, 1000, 0, true],
])("%s", (_, wall, monotonic, slept, setBack) => {
  const before = { wallMs: 1e12, monotonicMs: 5 };
  const now = { wallMs: 1e12 + wall, monotonicMs: 5 + monotonic };
  expect(sleptMs(before, now)).toBe(slept);
  expect(wasSetBack(before, now)).toBe(setBack);
});
