import { randomBytes } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { libdeflateGzip, roundTrips } from "./libdeflate.ts";

const text = Buffer.from("all of it, to the last byte. ".repeat(5000));
const noise = randomBytes(3 << 20);
const gzip = libdeflateGzip();

describe.skipIf(gzip === undefined)("libdeflate (skipped where the library is not installed)", () => {
  test("writes gzip, also from shared memory", () => {
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

  test("returns undefined when the output would be larger than the input, and still works afterwards", () => {
    expect(gzip!(noise)).toBeUndefined();
    expect(gunzipSync(gzip!(text)!).equals(text)).toBe(true);
  });
});

test("a library that returns wrong bytes is not used", () => {
  expect(roundTrips((raw) => Buffer.from(raw.subarray(0, raw.length >> 1)))).toBe(false);
  expect(roundTrips(() => undefined)).toBe(false);
});
