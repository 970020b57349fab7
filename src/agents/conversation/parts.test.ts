import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chainParts, countMerged, type Part, parsePartName, partName, SEALED_BYTES } from "./parts.ts";

const part = (generation: number, offset: number, size: number): Part => ({ generation, offset, size });

describe("the chain of parts", () => {
  test("names keep generation and offset, and sort by them", () => {
    const names = [part(0, 0, 1), part(0, 99_999, 1), part(1, 0, 1)].map(partName);
    expect([...names].sort()).toEqual(names);
    expect(parsePartName(names[1]!)).toEqual({ generation: 0, offset: 99_999 });
    for (const name of ["", "0000", "0000-1", "x-000000000000", "0000-000000000000.tmp"])
      expect(parsePartName(name)).toBeUndefined();
  });

  test("a merged part covers those that it was made from", () => {
    const { parts, size, leftovers } = chainParts([
      part(0, 0, 30),
      part(0, 10, 10),
      part(0, 20, 10),
      part(0, 30, 5),
    ]);
    expect(parts).toEqual([part(0, 0, 30), part(0, 30, 5)]);
    expect(size).toBe(35);
    expect(leftovers).toEqual([part(0, 10, 10), part(0, 20, 10)]);
  });

  test("a generation without its first part is not complete", () => {
    const chain = chainParts([part(0, 0, 10), part(1, 50, 10)]);
    expect(chain).toMatchObject({ generation: 0, size: 10, leftovers: [part(1, 50, 10)] });
    expect(chainParts([part(0, 0, 10), part(1, 0, 50), part(1, 50, 10)])).toMatchObject({
      generation: 1,
      size: 60,
    });
  });

  test("what comes after a gap does not count", () => {
    expect(chainParts([part(0, 0, 10), part(0, 11, 5)])).toMatchObject({ size: 10 });
  });
});

describe("merging", () => {
  /** The sizes after each append, and all bytes that were written. */
  function appendAll(appends: readonly number[]) {
    let sizes: number[] = [];
    let written = 0;
    let most = 0;
    for (const appended of appends) {
      const merged = countMerged(sizes, appended);
      const kept = sizes.slice(0, sizes.length - merged);
      const size = sizes.slice(sizes.length - merged).reduce((sum, each) => sum + each, appended);
      sizes = [...kept, size];
      written += size;
      most = Math.max(most, size);
    }
    return { sizes, written, most };
  }

  test("a transcript of 50 MB that grows by 4 KB has few parts, and each byte is written at most four times", () => {
    const appends = Array.from({ length: 12_800 }, () => 4096);
    const { sizes, written, most } = appendAll(appends);
    expect(sizes.length).toBeLessThan(50);
    expect(written).toBeLessThanOrEqual(4 * 12_800 * 4096);
    expect(most).toBeLessThan(8 * SEALED_BYTES);
  });

  test("nothing is lost, and the number of unsealed parts is bounded, for any appends", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 2 * SEALED_BYTES }), { maxLength: 300 });
    fc.assert(
      fc.property(sizes, (appends) => {
        const { sizes: kept } = appendAll(appends);
        expect(kept.reduce((sum, each) => sum + each, 0)).toBe(appends.reduce((sum, each) => sum + each, 0));
        expect(kept.filter((size) => size < SEALED_BYTES).length).toBeLessThan(64);
      }),
    );
  });
});
