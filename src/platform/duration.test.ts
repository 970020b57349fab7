import { describe, expect, it } from "vitest";
import { describeDuration, formatDuration } from "./duration.ts";

describe("a duration", () => {
  it.for([
    [0, "0s", "less than a second"],
    [-5, "0s", "less than a second"],
    [59, "59s", "59 s"],
    [3600, "1h", "1 h"],
    [3725, "1h 2m", "1 h 2 min"],
    [90_061, "1d 1h", "1 d 1 h"],
    [86_460, "1d", "1 d"],
  ] as const)("of %d seconds is %s in tables and %s in sentences", ([seconds, short, long]) => {
    expect(formatDuration(seconds)).toBe(short);
    expect(describeDuration(seconds)).toBe(long);
  });

  it("is rounded down in tables and to the nearest second in sentences", () => {
    expect(formatDuration(1.9)).toBe("1s");
    expect(describeDuration(1.9)).toBe("2 s");
  });
});
