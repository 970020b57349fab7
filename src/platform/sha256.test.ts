import { hash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { plainSha256Hex, sha256Hex } from "./sha256.ts";

it("is SHA-256 in both implementations", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii", maxLength: 300 }), (text) => {
      expect(plainSha256Hex(text)).toBe(hash("sha256", text));
      expect(sha256Hex(text)).toBe(hash("sha256", text));
    }),
  );
});

it.for([0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 1000, 20_000])(
  "is right at %i bytes, on both sides of a padding boundary",
  (length) => {
    expect(plainSha256Hex("é".repeat(length >> 1) + "x".repeat(length & 1))).toBe(
      hash("sha256", "é".repeat(length >> 1) + "x".repeat(length & 1)),
    );
  },
);
