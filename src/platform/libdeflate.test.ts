import { randomBytes } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { libdeflateGunzip, libdeflateGzip, roundTrips } from "./libdeflate.ts";

const text = Buffer.from("all of it, to the last byte. ".repeat(5000));
const noise = randomBytes(3 << 20);
const gzip = libdeflateGzip();
const gunzip = libdeflateGunzip();

describe.skipIf(gzip === undefined)("libdeflate (skipped where the library is not installed)", () => {
  test("writes gzip, even from shared memory", () => {
    const shared = new Uint8Array(new SharedArrayBuffer(text.length));
    shared.set(text);
    for (const raw of [text, shared]) {
      const member = gzip!(raw)!;
      expect(member.length).toBeGreaterThan(0);
      expect(gunzipSync(member).equals(text)).toBe(true);
    }
  });

  test("compresses a part of a buffer", () => {
    for (const raw of [text.subarray(12_345, 99_999), Buffer.alloc(1 << 20)])
      expect(gunzipSync(gzip!(raw)!).equals(raw)).toBe(true);
  });

  test("reads what zlib and libdeflate wrote", () => {
    for (const raw of [text, noise, Buffer.alloc(0), Buffer.from("x")])
      for (const member of [gzipSync(raw), gzipSync(raw, { level: 0 }), gzip!(raw) ?? gzipSync(raw)])
        expect(gunzip!(member, raw.length)!.equals(raw)).toBe(true);
  });

  test("refuses a member of another length, a damaged one, and bytes after it", () => {
    const member = gzipSync(text);
    const flipped = Buffer.from(member);
    flipped[member.length >> 1]! ^= 1;
    expect(gunzip!(member, text.length - 1)).toBeUndefined();
    expect(gunzip!(member, text.length + 1)).toBeUndefined();
    expect(gunzip!(member.subarray(0, -1), text.length)).toBeUndefined();
    expect(gunzip!(flipped, text.length)).toBeUndefined();
    expect(gunzip!(Buffer.concat([member, member]), text.length)).toBeUndefined();
    expect(gunzip!(randomBytes(500), 100)).toBeUndefined();
    expect(gunzip!(member, text.length)!.equals(text)).toBe(true);
  });

  test("returns undefined when the output would be larger than the input, and still works afterwards", () => {
    expect(gzip!(noise)).toBeUndefined();
    expect(gunzipSync(gzip!(text)!).equals(text)).toBe(true);
  });
});

test("a library that returns wrong bytes is not used", () => {
  expect(roundTrips((raw) => Buffer.from(raw.subarray(0, raw.length >> 1)))).toBe(false);
  expect(roundTrips(() => undefined)).toBe(false);
});
