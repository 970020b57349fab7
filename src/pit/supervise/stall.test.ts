import { describe, expect, test } from "vitest";
import {
  judgeStall,
  observe,
  restartClocks,
  sleptMs,
  stallCheckEveryMs,
  startClocks,
  wasSetBack,
} from "./stall.ts";

const limits = { stallSeconds: 60, progressSeconds: null };
const fresh = startClocks({ activity: 1, progress: 1 }, 0);

describe("a stall", () => {
  test("is silence past the limit", () => {
    expect(judgeStall(fresh, limits, 60_000)).toBeUndefined();
    expect(judgeStall(fresh, limits, 61_000)).toContain("for 61 s (limit 60 s)");
  });
  test("is averted by activity", () => {
    const active = observe(fresh, { activity: 2, progress: 1 }, 50_000);
    expect(judgeStall(active, limits, 100_000)).toBeUndefined();
  });
  test("is averted by progress", () => {
    const moved = observe(fresh, { activity: 1, progress: 2 }, 50_000);
    expect(judgeStall(moved, limits, 100_000)).toBeUndefined();
  });
  test("needs a limit", () => {
    expect(judgeStall(fresh, { stallSeconds: null, progressSeconds: null }, 1e12)).toBeUndefined();
  });
  test("is also missing progress while output continues", () => {
    const chatty = observe(fresh, { activity: 99, progress: 1 }, 999_000);
    expect(judgeStall(chatty, { stallSeconds: 60, progressSeconds: 600 }, 1_000_000)).toContain(
      "no flow or run",
    );
  });
  test("is timed from the start again after the host slept", () => {
    expect(judgeStall(restartClocks(fresh, 70_000), limits, 100_000)).toBeUndefined();
  });
  test("is averted by a sign that goes backwards, as after the clock was set", () => {
    expect(observe(fresh, { activity: -5, progress: 1 }, 7).activeMs).toBe(7);
  });
});

test.each([
  [{ stallSeconds: null, progressSeconds: null }, undefined],
  [{ stallSeconds: 1, progressSeconds: null }, 250],
  [{ stallSeconds: 4, progressSeconds: 100 }, 1000],
  [{ stallSeconds: 3600, progressSeconds: null }, 5000],
])("%o is checked every %s ms", (given, every) => {
  expect(stallCheckEveryMs(given)).toBe(every);
});

test.each([
  ["a busy second", 1000, 1000, 0, false],
  ["a night of sleep", 8 * 3_600_000, 1000, 8 * 3_600_000 - 1000, false],
  ["a small correction of the time", 2000, 1000, 0, false],
  ["a small correction back", -2000, 1000, 0, false],
  ["a clock set back", -3_600_000, 1000, 0, true],
])("%s", (_, wall, monotonic, slept, setBack) => {
  const before = { wallMs: 1e12, monotonicMs: 5 };
  const now = { wallMs: 1e12 + wall, monotonicMs: 5 + monotonic };
  expect(sleptMs(before, now)).toBe(slept);
  expect(wasSetBack(before, now)).toBe(setBack);
});
