import { randomBytes } from "node:crypto";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ISAL, LIBDEFLATE, loadGzip } from "./native-gzip.ts";

const text = Buffer.from("all of it, to the last byte. ".repeat(5000));
const noise = randomBytes(3 << 20);

describe.each([ISAL, LIBDEFLATE])("$name", (maker) => {
  const gzip = loadGzip(maker);

  test.skipIf(gzip === undefined)("writes gzip, into shared memory too", () => {
    for (const memory of [new ArrayBuffer(text.length), new SharedArrayBuffer(text.length)]) {
      const out = new Uint8Array(memory);
      const length = gzip!(text, out);
      expect(length).toBeGreaterThan(0);
      expect(gunzipSync(Buffer.from(out.subarray(0, length))).equals(text)).toBe(true);
    }
  });

  test.skipIf(gzip === undefined)("reads from the middle of a buffer, and what has no pattern", () => {
    const out = new Uint8Array(noise.length + 65_536);
    for (const raw of [noise, noise.subarray(12_345, 99_999), Buffer.alloc(1 << 20)]) {
      const length = gzip!(raw, out);
      expect(gunzipSync(out.subarray(0, length)).equals(raw)).toBe(true);
    }
  });

  test.skipIf(gzip === undefined)("says that there is too little room, and overruns nothing", () => {
    const out = new Uint8Array(8192).fill(7);
    expect(gzip!(noise, out.subarray(0, 4096))).toBe(0);
    expect(out.subarray(4096)).toEqual(new Uint8Array(4096).fill(7));
    const length = gzip!(text, new Uint8Array(text.length));
    expect(length, "and goes on as before").toBeGreaterThan(0);
  });
});

test("a library that is not there, or lies, is not used", () => {
  const files = { linux: ["libc.so.6"], darwin: ["libSystem.dylib"] };
  expect(loadGzip({ name: "none", files: { linux: ["libnone.so.9"] }, open: () => () => 1 })).toBeUndefined();
  expect(loadGzip({ name: "liar", files, open: () => (_raw, out) => out.length >> 1 })).toBeUndefined();
});
