// Layers written and read back, and the vault that holds them.
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LazarusError } from "../../platform/errors.ts";
import { systemMachine } from "../../platform/machine.ts";
import { createRandom } from "../../testing/index.ts";
import { CODECS, gzipCodec } from "./codec.ts";
import { createLayerWriter } from "./layer-writer.ts";
import { type LayerRef, openLayerOf } from "./manifest.ts";
import { openVault, type Vault } from "./vault.ts";

let directory: string;
let vault: Vault;

beforeEach(async () => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-layer-"));
  vault = openVault(systemMachine, directory, "m");
  (await vault.lock("a test"))[Symbol.dispose]();
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

function writeLayer(parts: readonly Buffer[], codec = gzipCodec): LayerRef {
  const writer = createLayerWriter(systemMachine.disk, vault, { codec, localOnly: false, name: "test" });
  for (const part of parts) writer.append(codec.compress(part), part, 0);
  return writer.finish(["gone"]);
}

describe.each(CODECS.map((codec) => [codec.name, codec] as const))("a layer of %s", (_, codec) => {
  it("reads any range of its stream", () => {
    const random = createRandom(5);
    const parts = Array.from({ length: 6 }, () => randomBytes(random.int(1, 5000)));
    const whole = Buffer.concat(parts);
    using layer = openLayerOf(vault, writeLayer(parts, codec));
    for (let i = 0; i < 200; i += 1) {
      const at = random.int(0, whole.length);
      const length = random.int(0, whole.length - at);
      const chunks: Buffer[] = [];
      layer.read(at, length, (chunk) => chunks.push(Buffer.from(chunk)));
      expect(Buffer.concat(chunks).equals(whole.subarray(at, at + length))).toBe(true);
    }
    expect(layer.toc.removed).toEqual(["gone"]);
    expect(() => layer.read(whole.length + 1024, 1, () => {})).toThrow(LazarusError);
  });

  it("is refused when it is truncated or its table does not match the manifest", () => {
    const ref = writeLayer([randomBytes(1000)], codec);
    expect(() => openLayerOf(vault, { ...ref, tocSha256: "0".repeat(64) })).toThrow(
      /table of contents does not match/,
    );
    const file = vault.blobPath(ref.digest);
    for (const size of [0, 10, ref.size - 1]) {
      fs.truncateSync(file, size);
      expect(() => openLayerOf(vault, ref)).toThrow(expect.objectContaining({ code: "LAYER_DAMAGED" }));
    }
    fs.rmSync(file);
    expect(() => openLayerOf(vault, ref)).toThrow(expect.objectContaining({ code: "LAYER_DAMAGED" }));
  });
});

it("removes an abandoned layer and keeps a finished one", () => {
  const writer = createLayerWriter(systemMachine.disk, vault, {
    codec: gzipCodec,
    localOnly: true,
    name: "half",
  });
  writer.append(gzipCodec.compress(Buffer.from("x")), Buffer.from("x"), 0);
  writer.abandon();
  writer.abandon();
  expect(fs.readdirSync(vault.scratch)).toEqual([]);
  const done = createLayerWriter(systemMachine.disk, vault, {
    codec: gzipCodec,
    localOnly: true,
    name: "whole",
  });
  const ref = done.finish([]);
  done.abandon();
  expect(vault.has(ref.digest)).toBe(true);
  expect(ref.mediaType).toBe(gzipCodec.localMediaType);
  // The digests are those of the bytes, as any tool would count them.
  const bytes = fs.readFileSync(vault.blobPath(ref.digest));
  expect(vault.put(bytes).digest).toBe(ref.digest);
});

describe("a vault", () => {
  it("refuses to read a damaged blob until it is stored again", () => {
    const { digest } = vault.put(Buffer.from("content"));
    fs.writeFileSync(vault.blobPath(digest), "rubbish");
    expect(() => vault.read(digest)).toThrow(expect.objectContaining({ code: "VAULT_DAMAGED" }));
    vault.put(Buffer.from("content"));
    expect(vault.read(digest).toString()).toBe("content");
  });

  it("is an OCI layout from its first lock, and rejects malformed digests", () => {
    expect(JSON.parse(fs.readFileSync(join(vault.root, "oci-layout"), "utf8"))).toEqual({
      imageLayoutVersion: "1.0.0",
    });
    for (const bad of ["sha256:../../etc/passwd", "md5:abc", "", "sha256:ABC"])
      expect(() => vault.blobPath(bad)).toThrow(LazarusError);
  });

  it("empties scratch when the lock is taken", async () => {
    fs.writeFileSync(join(vault.scratch, "left"), "x");
    using _lock = await vault.lock("a test");
    expect(fs.readdirSync(vault.scratch)).toEqual([]);
  });

  it("lists published checkpoints in order, and detects a flipped bit", () => {
    const ref = {
      id: "20260101-000000-aaaaaa",
      manifest: `sha256:${"a".repeat(64)}`,
      manifestSize: 1,
      createdAtMs: 1_767_225_600_000,
      reason: "manual",
      message: "ü\n",
      parent: null,
      pinned: true,
      provenAtMs: 5000,
      beforeRestoreOf: "x",
    } as const;
    const refs = [
      ref,
      {
        ...ref,
        id: "20260101-000000-bbbbbb",
        message: null,
        pinned: false,
        provenAtMs: null,
        beforeRestoreOf: null,
      },
    ];
    vault.publish(refs);
    expect(vault.list()).toEqual(refs);
    const file = join(vault.root, "index.json");
    const text = fs.readFileSync(file, "utf8");
    for (const [from, to] of [
      ["aaaaaa", "aaaaab"],
      ["manual", "manuel"],
      ["2026-01-01T", "2026-01-02T"],
      ["}]", "}}"],
    ] as const) {
      fs.writeFileSync(file, text.replace(from, to));
      expect(() => vault.list()).toThrow(expect.objectContaining({ code: "VAULT_DAMAGED" }));
    }
  });
});
