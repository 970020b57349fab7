// Suggestions for mistyped words.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editDistance, nearest } from "../platform/nearest.ts";
import { CATALOGUE } from "./catalogue.ts";

describe("nearest", () => {
  it.each([
    ["scna", "scan"],
    ["sacn", "scan"],
    ["heartbeet", "heartbeat"],
    ["hearbeat", "heartbeat"],
    ["intit", "init"],
    ["confg", "config"],
    ["docter", "doctor"],
  ])("%s is %s", (typed, meant) => {
    expect(nearest(typed, Object.keys(CATALOGUE))).toBe(meant);
  });

  it.each([
    ["nothing", ""],
    ["a letter", "x"],
    ["another word", "frobnicate"],
    ["something endless", "a".repeat(10_000)],
  ])("has no suggestion for %s", (_, typed) => {
    expect(nearest(typed, Object.keys(CATALOGUE))).toBeUndefined();
  });
});

describe("editDistance", () => {
  it("counts an insertion, deletion, substitution or transposition as one", () => {
    expect(editDistance("scan", "scan")).toBe(0);
    expect(editDistance("scan", "scn")).toBe(1);
    expect(editDistance("scan", "sscan")).toBe(1);
    expect(editDistance("scan", "scat")).toBe(1);
    expect(editDistance("scan", "sacn")).toBe(1);
    expect(editDistance("", "abc")).toBe(3);
  });

  it("is symmetric, 0 only for equal words, and at most the length of the longer one", () => {
    const word = fc.string({ maxLength: 12 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});
