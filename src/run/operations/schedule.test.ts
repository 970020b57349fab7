// Which ticks of a schedule are due.
import { describe, expect, test } from "vitest";
import { isRunId } from "../model/run-id.ts";
import { checkScheduleName, dueTicks, tickRunId } from "./schedule.ts";

const HOUR = 3_600_000;
const hourly = (afterMs: number) => (Math.floor(afterMs / HOUR) + 1) * HOUR;

describe("due ticks", () => {
  test("a new schedule begins now", () => {
    expect(dueTicks(undefined, 5 * HOUR + 7, hourly, "all")).toEqual({
      run: [],
      handled: 5 * HOUR + 7,
      missed: 0,
    });
  });
  test("nothing is due before the next tick", () => {
    expect(dueTicks(5 * HOUR, 6 * HOUR - 1, hourly, "all")).toEqual({
      run: [],
      handled: undefined,
      missed: 0,
    });
  });
  test.each([
    ["none", [], 3],
    ["last", [8 * HOUR], 2],
    ["all", [6 * HOUR, 7 * HOUR, 8 * HOUR], 0],
  ] as const)("after three missed ticks, %s runs %j", (catchUp, run, missed) => {
    expect(dueTicks(5 * HOUR, 8.5 * HOUR, hourly, catchUp)).toEqual({ run, handled: 8 * HOUR, missed });
  });
  test.each(["none", "last", "all"] as const)("a tick on time runs with %s", (catchUp) => {
    expect(dueTicks(5 * HOUR, 6 * HOUR + 900, hourly, catchUp).run).toEqual([6 * HOUR]);
  });
  test("a schedule that ends has no more ticks", () => {
    expect(dueTicks(5 * HOUR, 9 * HOUR, () => undefined, "all").run).toEqual([]);
  });
  test("a tick names its run; names that cannot be part of a run id are refused", () => {
    expect(tickRunId("nightly", Date.UTC(2026, 10, 18, 3))).toBe("nightly-20261118T030000000Z");
    expect(isRunId(tickRunId("nightly", 0))).toBe(true);
    expect(() => checkScheduleName("n/ightly")).toThrow("not the name of a schedule");
    expect(() => checkScheduleName("x".repeat(120))).toThrow("not the name of a schedule");
  });
});
