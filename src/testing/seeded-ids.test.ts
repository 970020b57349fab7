// The seeded random source: repeatable, in range, and roughly uniform.
import { describe, expect, it } from "vitest";
import { createRandom, createSeededIds } from "./seeded-ids.ts";

describe("createRandom", () => {
  it("gives the same sequence for the same seed", () => {
    for (const seed of [0, 1, -1, 2 ** 31, 123_456_789_012]) {
      const draw = () => {
        const random = createRandom(seed);
        return [random.int(0, 1e9), random.chance(0.5), random.pick([1, 2, 3]), [...random.bytes(8)]];
      };
      expect(draw()).toEqual(draw());
    }
    expect(createRandom(1).bytes(16)).not.toEqual(createRandom(2).bytes(16));
  });

  it("draws every integer of a range, inclusive", () => {
    const random = createRandom(1);
    expect(new Set(Array.from({ length: 500 }, () => random.int(-2, 2)))).toEqual(new Set([-2, -1, 0, 1, 2]));
    expect(random.int(7, 7)).toBe(7);
    expect(() => random.int(2, 1)).toThrow(RangeError);
    expect(() => random.pick([])).toThrow(RangeError);
  });

  it("returns true with the given probability", () => {
    const random = createRandom(1);
    const hits = Array.from({ length: 10_000 }, () => random.chance(0.3)).filter(Boolean).length;
    expect(Math.abs(hits - 3000)).toBeLessThan(200);
    expect([random.chance(0), random.chance(1)]).toEqual([false, true]);
  });
});

it("creates ids from the seed", () => {
  expect(createSeededIds(3).bytes(4)).toEqual(createRandom(3).bytes(4));
});
