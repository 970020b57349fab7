import { describe, expect, test } from "vitest";
import {
  judgeStall,
  observe,
  restartClocks,
  type Signs,
  sleptMs,
  stallCheckEveryMs,
  startClocks,
  wasSetBack,
} from "./stall.ts";

const limits = { stallSeconds: 60, progressSeconds: null };
const silent: Signs = { activity: "1", usage: { cpuMs: 5000, writtenBytes: 100 }, progress: "1" };
const fresh = startClocks(silent, 0);
const seen = (signs: Partial<Signs>, atMs = 50_000) => observe(fresh, { ...silent, ...signs }, limits, atMs);
const using = (cpuMs: number, writtenBytes = 100) => ({ usage: { cpuMs, writtenBytes } });

describe("a stall", () => {
  test("is silence past the limit", () => {
    expect(judgeStall(fresh, limits, 60_000)).toBeUndefined();
    expect(judgeStall(fresh, limits, 61_000)).toContain("for 61 s (limit 60 s)");
  });
  test("is averted by activity", () => {
    expect(judgeStall(seen({ activity: "2" }), limits, 100_000)).toBeUndefined();
  });
  test("is averted by progress", () => {
    expect(judgeStall(seen({ progress: "2" }), limits, 100_000)).toBeUndefined();
  });
  test("needs a limit", () => {
    expect(judgeStall(fresh, { stallSeconds: null, progressSeconds: null }, 1e12)).toBeUndefined();
  });
  test("is also missing progress while output continues", () => {
    const chatty = seen({ activity: "99" }, 999_000);
    expect(judgeStall(chatty, { stallSeconds: 60, progressSeconds: 600 }, 1_000_000)).toContain(
      "no flow or run",
    );
  });
  test("is timed from the start again after the host slept", () => {
    expect(judgeStall(restartClocks(fresh, 70_000), limits, 100_000)).toBeUndefined();
  });
  test("is averted by a counter that decreases, as after the clock was set", () => {
    expect(seen({ activity: "-5" }, 7).activeMs).toBe(7);
  });
  test("is averted by bytes that any process of the life writes", () => {
    expect(judgeStall(seen(using(5000, 101)), limits, 100_000)).toBeUndefined();
  });
  test("is averted by CPU time of 1 % of the limit, however slowly it adds up", () => {
    expect(seen(using(5600)).activeMs).toBe(50_000);
    const idle = seen(using(5590), 30_000);
    expect(idle.activeMs).toBe(0);
    expect(observe(idle, { ...silent, ...using(5600) }, limits, 55_000).activeMs).toBe(55_000);
    expect(judgeStall(idle, limits, 61_000)).toContain("no output, write, CPU use or heartbeat for 61 s");
  });
  test("is not averted when a process ends and its counters are gone", () => {
    const ended = seen(using(1000, 10), 30_000);
    expect(ended.activeMs).toBe(0);
    expect(observe(ended, { ...silent, ...using(1600, 10) }, limits, 31_000).activeMs).toBe(31_000);
  });
  test("needs no counters where the kernel has none", () => {
    const blind = startClocks({ ...silent, usage: undefined }, 0);
    expect(observe(blind, { ...silent, usage: undefined }, limits, 30_000).activeMs).toBe(0);
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
