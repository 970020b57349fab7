import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { libdeflateGzip } from "./libdeflate.ts";

const gzip = libdeflateGzip();
const text = Buffer.from("all of it, to the last byte. ".repeat(5000));

test.skipIf(gzip === undefined)("what it writes is gzip, in shared memory too", () => {
  for (const memory of [new ArrayBuffer(text.length), new SharedArrayBuffer(text.length)]) {
    const out = new Uint8Array(memory);
    const length = gzip!(text, out);
    expect(length).toBeGreaterThan(0);
    expect(gunzipSync(Buffer.from(out.subarray(0, length))).equals(text)).toBe(true);
  }
});

test.skipIf(gzip === undefined)("too little room is said, not overrun", () => {
  const out = new Uint8Array(64).fill(7);
  expect(gzip!(text, out.subarray(0, 32))).toBe(0);
  expect(out.subarray(32)).toEqual(new Uint8Array(32).fill(7));
});
