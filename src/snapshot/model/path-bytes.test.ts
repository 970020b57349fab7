import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { comparePaths, decodePath, encodePath, joinPath, parentPath, systemPath } from "./path-bytes.ts";

describe("encoding of names", () => {
  it("round-trips any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        expect(encodePath(decodePath(bytes)).equals(Buffer.from(bytes))).toBe(true);
      }),
    );
  });

  it("also through JSON", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const path = decodePath(bytes);
        expect(JSON.parse(JSON.stringify(path))).toBe(path);
        expect(JSON.parse(Buffer.from(JSON.stringify(path)).toString("utf8"))).toBe(path);
      }),
    );
  });

  it("leaves valid text unchanged", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(text.isWellFormed());
        expect(decodePath(Buffer.from(text))).toBe(text);
        expect(Buffer.from(systemPath(text)).equals(Buffer.from(text))).toBe(true);
      }),
    );
    expect(decodePath(Buffer.from("\ufeff\ufffd"))).toBe("\ufeff\ufffd");
  });

  it.each([
    ["a lone byte", [0xff]],
    ["half a sequence", [0xc3]],
    ["an encoded surrogate", [0xed, 0xb2, 0x80]],
    ["an overlong form", [0xc0, 0xaf]],
    ["a sequence beyond Unicode", [0xf5, 0x80, 0x80, 0x80]],
    ["text around it", [0x61, 0xff, 0xf0, 0x9f, 0xa6, 0x80, 0xfe]],
  ])("%s is kept apart from text", (_, bytes) => {
    const path = decodePath(Uint8Array.from(bytes));
    expect(path.isWellFormed()).toBe(false);
    expect(systemPath(path)).toEqual(Buffer.from(bytes));
  });
});

it("paths are joined, split and sorted with parents first", () => {
  expect([joinPath(".", "a"), joinPath("a", "b"), parentPath("a/b"), parentPath("a")]).toEqual([
    "a",
    "a/b",
    "a",
    ".",
  ]);
  expect(["b", "a/b", ".", "a", "a-b", "a/a"].sort(comparePaths)).toEqual([
    ".",
    "a",
    "a/a",
    "a/b",
    "a-b",
    "b",
  ]);
});
