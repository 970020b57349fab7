import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createRandom } from "../../testing/index.ts";
import { nameAt } from "./name-table.ts";
import {
  type CachedEntry,
  cachedEntry,
  decodeStatCache,
  encodeStatCache,
  type StatCache,
} from "./stat-cache.ts";
import { createStatCacheBuilder } from "./stat-cache-builder.ts";

function share(bytes: Uint8Array): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(bytes.length);
  new Uint8Array(shared).set(bytes);
  return shared;
}

function decode(bytes: Uint8Array): StatCache | undefined {
  try {
    return decodeStatCache(share(bytes));
  } catch {
    // readStatCache treats this as no cache, too.
    return undefined;
  }
}

const seen = (path: string, i: number): CachedEntry => ({
  entry: {
    path,
    type: i === 0 ? "directory" : "file",
    mode: 0o7777 - i,
    uid: 4_000_000_000,
    gid: i,
    mtimeSec: -5 + i * 1e10,
    mtimeNs: 999_999_999,
    size: i === 0 ? 0 : 2 ** 40 + i,
    sha256: i === 0 ? "" : createHash("sha256").update(path).digest("hex"),
    ...(i === 2 ? { group: "g", xattrs: [["user.a", "eA=="]], extents: [[0, 5]] } : {}),
  },
  mark: { ctimeMs: 1_700_000_000_123.456, ino: 2 ** 40 + i, nlink: 1 + i },
  racy: i === 3,
});

const NAMES = ["", "plain", "\udcffraw", "日本 🦀", "new\nline"];

function build(): StatCache {
  const builder = createStatCacheBuilder(NAMES.length);
  for (const [i, name] of NAMES.entries()) {
    builder.add(name, seen(name, i), seen(name, i).racy);
    builder.setChildren(i, i === 0 ? 1 : 0, i === 0 ? 4 : 0, i !== 0);
  }
  return builder.finish("sha256:abc");
}

describe("the stat cache", () => {
  it("round-trips through its file", () => {
    const cache = decode(encodeStatCache(build()))!;
    expect(cache).toMatchObject({ manifest: "sha256:abc", count: 5 });
    expect(NAMES.map((_, i) => nameAt(cache, i))).toEqual(NAMES);
    for (const [i, name] of NAMES.entries()) expect(cachedEntry(cache, i, name)).toEqual(seen(name, i));
    expect([cache.firstChild[0], cache.childCount[0], cache.partial[0], cache.partial[1]]).toEqual([
      1, 4, 1, 0,
    ]);
  });

  it("copies rows from an older one", () => {
    const old = decode(encodeStatCache(build()))!;
    const builder = createStatCacheBuilder(1);
    builder.copy(old, 2, 1);
    expect(cachedEntry(builder.finish("m"), 0, NAMES[2]!)).toEqual(seen(NAMES[2]!, 2));
  });

  it("is rejected when a bit is flipped or a part is missing", () => {
    const whole = encodeStatCache(build());
    const random = createRandom(7);
    const content = (cache: StatCache) => NAMES.map((_, i) => cachedEntry(cache, i, nameAt(cache, i)));
    const wanted = JSON.stringify(content(decode(whole)!));
    for (let i = 0; i < 2000; i += 1) {
      const damaged = Buffer.from(whole);
      damaged[random.int(0, damaged.length - 1)]! ^= 1 << random.int(0, 7);
      const cache = decode(damaged);
      // A flip in the manifest digest makes it another checkpoint's cache; a flip in white space changes nothing.
      if (cache !== undefined) expect(JSON.stringify(content(cache))).toBe(wanted);
    }
    for (let length = 0; length < whole.length; length += 7)
      expect(decode(whole.subarray(0, length))).toBe(undefined);
  });
});
