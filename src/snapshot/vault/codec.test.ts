import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { isInstalled } from "../../../test/snapshot/tools.ts";
import { CODECS, codecOf, gzipCodec, isLocalOnly, looksIncompressible } from "./codec.ts";

const SIZES = [1, 100, 65_530, 65_531, 65_532, 200_000];

describe.each(CODECS.map((codec) => [codec.name, codec] as const))("%s", (name, codec) => {
  it("round-trips, and decompresses no more than the limit", () => {
    for (const raw of [
      Buffer.alloc(0),
      Buffer.from("text"),
      Buffer.alloc(300_000, "ab"),
      randomBytes(100_000),
      Buffer.alloc(900_000, "more than a small layer "),
    ]) {
      const stored = codec.compress(raw);
      if (raw.length > 0) expect(codec.decompress(stored, raw.length).equals(raw)).toBe(true);
      if (raw.length > 1) expect(() => codec.decompress(stored, raw.length - 1)).toThrow();
    }
  });

  it("round-trips hidden bytes", () => {
    for (const size of SIZES) {
      const payload = randomBytes(size);
      expect(codec.reveal(codec.hide(payload)).equals(payload)).toBe(true);
    }
  });

  it("accepts only its own footer", () => {
    const footer = { tocOffset: 2 ** 40 + 3, tocLength: 12_345 };
    const bytes = codec.encodeFooter(footer);
    expect(bytes).toHaveLength(codec.footerLength);
    expect(codec.decodeFooter(bytes)).toEqual(footer);
    expect(codec.decodeFooter(bytes.subarray(1))).toBe(undefined);
    const payload = bytes.length - (name === "gzip" ? 10 : 0);
    for (let i = payload - 24; i < payload; i += 1) {
      const damaged = Buffer.from(bytes);
      damaged[i]! ^= 0x10;
      expect(codec.decodeFooter(damaged)).toBe(undefined);
    }
  });

  it.skipIf(!isInstalled(name, `members decompressed by ${name}`))(
    "is read by the system's tool, which skips the hidden bytes",
    () => {
      const parts = [Buffer.from("first "), Buffer.alloc(100_000, "x"), randomBytes(50_000)];
      const layer = Buffer.concat([
        ...parts.map((part) => codec.compress(part)),
        codec.hide(randomBytes(150_000)),
        codec.encodeFooter({ tocOffset: 1, tocLength: 2 }),
      ]);
      const out = execFileSync(name === "gzip" ? "gzip" : "zstd", ["-dc"], {
        input: layer,
        maxBuffer: 1 << 24,
      });
      expect(out.equals(Buffer.concat(parts))).toBe(true);
      const python = execFileSync(
        "python3",
        ["-c", "import gzip,sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))"],
        {
          input: name === "gzip" ? layer : gzipCodec.compress(Buffer.concat(parts)),
          maxBuffer: 1 << 24,
        },
      );
      expect(python.equals(Buffer.concat(parts))).toBe(true);
    },
  );

  it("has a media type for layers that are never pushed", () => {
    expect([codec.mediaType, codec.localMediaType].map(isLocalOnly)).toEqual([false, true]);
    expect([codec.mediaType, codec.localMediaType].map(codecOf)).toEqual([codec, codec]);
  });
});

it("stores incompressible data", () => {
  expect(looksIncompressible(randomBytes(100_000))).toBe(true);
  expect(looksIncompressible(Buffer.alloc(100_000, "text "))).toBe(false);
  expect(looksIncompressible(randomBytes(1000))).toBe(false);
  expect(codecOf("application/vnd.oci.image.layer.v1.tar")).toBe(undefined);
});
