import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { diffBytes, diffPieces, joinLinks, type Link } from "./delta.ts";
import { pack, unpack } from "./pack.ts";

describe("deltas", () => {
  test("appending one element stores only that element", () => {
    const base = Buffer.from('["a","b"]');
    const { keep, tail, middle } = diffBytes(base, Buffer.from('["a","b","c"]'));
    expect([keep, tail, Buffer.from(middle).toString()]).toEqual([8, 1, ',"c"']);
  });
  test("joining a chain of deltas yields the last value", () => {
    const value = fc.array(fc.constantFrom("a", "b", "[", "]", ",", "xyz".repeat(2000)), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 12 }), (values) => {
        const texts = values.map((parts) => Buffer.from(parts.join("")));
        const links: Link[] = [{ keep: 0, tail: 0, body: texts[0]! }];
        for (let i = 1; i < texts.length; i += 1) {
          const { keep, tail, middle } = diffBytes(texts[i - 1]!, texts[i]!);
          links.push({ keep, tail, body: middle });
        }
        expect(Buffer.from(joinLinks(links)).equals(texts.at(-1)!)).toBe(true);
      }),
    );
  });
  test("diffPieces agrees with diffBytes on the concatenated pieces", () => {
    const shared = ["[", "a", ",", "b".repeat(5000), "]", "", "ab"].map((text) => Buffer.from(text));
    const pieces = fc.array(fc.constantFrom(...shared), { maxLength: 12 });
    fc.assert(
      fc.property(pieces, pieces, (base, next) => {
        expect(diffPieces(base, next)).toEqual(diffBytes(Buffer.concat(base), Buffer.concat(next)));
      }),
    );
  });
  test("unpack reverses pack, and refuses an unknown encoding", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), fc.nat(50), (bytes, times) => {
        const long = Buffer.concat(Array.from({ length: times + 1 }, () => bytes));
        expect(Buffer.from(unpack(pack(long))).equals(long)).toBe(true);
      }),
    );
    expect(() => unpack(Buffer.of(9, 1, 2))).toThrow(/encoding 9, which this version does not know/);
  });
});
