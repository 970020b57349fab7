// Ids: their alphabet, their order, and that they come from the injected source.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSeededIds } from "../testing/seeded-ids.ts";
import { randomText, systemIds, timeOrderedId } from "./ids.ts";

describe("randomText", () => {
  it("has the length and alphabet of Crockford base 32", () => {
    expect(randomText(systemIds, 200)).toMatch(/^[0-9abcdefghjkmnpqrstvwxyz]{200}$/);
    expect(randomText(systemIds, 0)).toBe("");
  });

  it("differs from call to call, and repeats for the same seed", () => {
    expect(randomText(systemIds, 20)).not.toBe(randomText(systemIds, 20));
    expect(randomText(createSeededIds(7), 20)).toBe(randomText(createSeededIds(7), 20));
    expect(randomText(createSeededIds(7), 20)).not.toBe(randomText(createSeededIds(8), 20));
  });

  it("uses every character about as often as any other", () => {
    const counts = new Map<string, number>();
    for (const character of randomText(createSeededIds(1), 32_000))
      counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).toBe(32);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(200);
  });
});

describe("timeOrderedId", () => {
  it("is the time in UTC to the second, then six random characters", () => {
    expect(timeOrderedId(Date.UTC(2026, 10, 15, 23, 53, 1, 999), systemIds)).toMatch(
      /^20261115-235301-[0-9a-z]{6}$/,
    );
  });

  it("sorts by time", () => {
    const ids = createSeededIds(1);
    const second = fc.integer({ min: 0, max: 253_402_300_799 });
    fc.assert(
      fc.property(second, second, (a, b) => {
        if (a === b) return;
        expect(timeOrderedId(a * 1000, ids) < timeOrderedId(b * 1000, ids)).toBe(a < b);
      }),
    );
  });
});
