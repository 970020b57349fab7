import { zstdDecompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { zstdDirect } from "./zstd-direct.ts";

const zstd = zstdDirect();
const text = Buffer.from("all of it, to the last byte. ".repeat(5000));

test.skipIf(zstd === undefined)("what it writes is zstd, in shared memory too, time and again", () => {
  for (const memory of [new ArrayBuffer(text.length), new SharedArrayBuffer(text.length)]) {
    for (const raw of [text, text.subarray(1), new Uint8Array()]) {
      const out = new Uint8Array(memory);
      const length = zstd!(raw, out);
      expect(length).toBeGreaterThan(0);
      expect(zstdDecompressSync(Buffer.from(out.subarray(0, length))).equals(raw)).toBe(true);
    }
  }
});

test.skipIf(zstd === undefined)("its frames carry a checksum", () => {
  const out = new Uint8Array(text.length);
  const frame = Buffer.from(out.subarray(0, zstd!(text, out)));
  frame[frame.length - 1]! ^= 1;
  expect(() => zstdDecompressSync(frame)).toThrow();
});

test.skipIf(zstd === undefined)("too little room is said, not overrun", () => {
  const out = new Uint8Array(64).fill(7);
  expect(zstd!(text, out.subarray(0, 32))).toBe(0);
  expect(out.subarray(32)).toEqual(new Uint8Array(32).fill(7));
});
