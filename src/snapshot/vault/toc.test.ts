import { randomBytes } from "node:crypto";
import zlib from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../testing/index.ts";
import { decodePath } from "../model/path-bytes.ts";
import { decodeToc, encodeToc, type Toc, TocError } from "./toc.ts";
import type { TocEntry } from "./toc-row.ts";

const LIMIT = 1 << 24;
const name = fc
  .uint8Array({ minLength: 1, maxLength: 20 })
  .map((bytes) => decodePath(bytes.map((byte) => (byte === 0 || byte === 0x2f ? 0x61 : byte))))
  .filter((text) => text !== "." && text !== "..");
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const entry: fc.Arbitrary<TocEntry> = fc
  .record(
    {
      path,
      type: fc.constantFrom("file" as const, "directory" as const, "symlink" as const, "fifo" as const),
      mode: fc.nat({ max: 0o7777 }),
      uid: fc.nat({ max: 2 ** 32 - 1 }),
      gid: fc.nat({ max: 2 ** 32 - 1 }),
      mtimeSec: fc.maxSafeInteger(),
      mtimeNs: fc.nat({ max: 999_999_999 }),
      size: count,
      sha256: fc.constantFrom("", "ab".repeat(32)),
      target: name,
      group: fc.string(),
      extents: fc.array(fc.tuple(count, count), { minLength: 1, maxLength: 3 }),
      xattrs: fc.array(fc.tuple(fc.string(), fc.base64String()), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ["path", "type", "mode", "uid", "gid", "mtimeSec", "mtimeNs", "size", "sha256"] },
  )
  .chain((base) =>
    fc
      .option(fc.tuple(count, count), { nil: undefined })
      .map((place) => (place === undefined ? base : { ...base, at: place[0], length: place[1] })),
  ) as fc.Arbitrary<TocEntry>;

describe("a table of contents", () => {
  it("round-trips", () => {
    const toc = fc.record({
      members: fc.array(fc.record({ stored: count, raw: count, entries: count }), { maxLength: 5 }),
      entries: fc.array(entry, { maxLength: 20 }),
      removed: fc.array(path, { maxLength: 5 }),
    });
    fc.assert(
      fc.property(toc, (given) => {
        expect(decodeToc(encodeToc(given), LIMIT)).toEqual(given);
      }),
    );
  });

  it("writes the same rows as JSON.stringify", () => {
    const plain = fc.stringMatching(/^[ -~]{1,20}$/).filter((text) => !/(^|\/)(\.{0,2})(\/|$)/.test(text));
    const given = fc.tuple(entry, fc.option(plain, { nil: undefined }));
    fc.assert(
      fc.property(fc.array(given, { maxLength: 5 }), (drawn) => {
        const entries = drawn.map(([one, path]) => (path === undefined ? one : { ...one, path }));
        const text = zlib.gunzipSync(encodeToc({ members: [], entries, removed: [] })).toString();
        for (const line of text.trimEnd().split("\n")) expect(JSON.stringify(JSON.parse(line))).toBe(line);
      }),
    );
  });

  it.each(["", "/a", "a//b", "a/../b", "..", "a/.", "./a", "a\0b", "a/"])("refuses the path %j", (bad) => {
    const toc: Toc = { members: [], entries: [], removed: [bad] };
    expect(() => decodeToc(encodeToc(toc), LIMIT)).toThrow(TocError);
  });

  it("refuses a table that inflates beyond the limit", () => {
    const bomb = zlib.gzipSync(Buffer.alloc(LIMIT + 1));
    expect(() => decodeToc(bomb, LIMIT)).toThrow(TocError);
  });

  it("throws only TocError on garbage and flipped bytes", () => {
    const random = createRandom(3);
    const base = {
      type: "file",
      mode: 1,
      uid: 2,
      gid: 3,
      mtimeSec: 4,
      mtimeNs: 5,
      size: 6,
      sha256: "",
      at: 7,
      length: 6,
    } as const;
    const toc: Toc = {
      members: [{ stored: 1, raw: 2, entries: 1 }],
      entries: [{ ...base, path: "a", group: "g", xattrs: [["k", "v"]], extents: [[0, 6]] }],
      removed: ["b"],
    };
    const text = zlib.gunzipSync(encodeToc(toc));
    for (let i = 0; i < 3000; i += 1) {
      const damaged = Buffer.from(text);
      for (let n = random.int(1, 3); n > 0; n -= 1)
        damaged[random.int(0, damaged.length - 1)] = random.pick([
          ...Buffer.from('"[]{},:0-9ane\n'),
          random.int(0, 255),
        ]);
      try {
        decodeToc(zlib.gzipSync(damaged), LIMIT);
      } catch (error) {
        expect(error, damaged.toString("latin1")).toBeInstanceOf(TocError);
      }
    }
    for (let i = 0; i < 50; i += 1) expect(() => decodeToc(randomBytes(i), LIMIT)).toThrow(TocError);
  });
});
