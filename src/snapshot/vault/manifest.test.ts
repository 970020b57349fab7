// Manifests and configs with valid digests and invalid contents: anyone may put a blob into a vault.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BASE,
  initializedContext,
  makeLayer,
  publishCheckpoint,
  seededMachine,
} from "../../../test/snapshot/hand-made.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { readCheckpoint } from "./manifest.ts";

let home: string;
let context: MissionContext;
let ref: CheckpointRef;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-manifest-"));
  context = await initializedContext(seededMachine(), home);
  ref = publishCheckpoint(context, [makeLayer(context, BASE)]);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const parse = (digest: string) => JSON.parse(context.vault.read(digest).toString("utf8"));
const put = (document: unknown) => context.vault.put(Buffer.from(JSON.stringify(document))).digest;

/** The checkpoint with another manifest, and another config where one is given. */
function forged(manifest: unknown, config?: unknown): CheckpointRef {
  const whole =
    config === undefined ? manifest : { ...(manifest as object), config: { digest: put(config) } };
  return { ...ref, manifest: put(whole) };
}

describe("a manifest or config with the wrong shape", () => {
  it("is reported as damage, for any content of a field", () => {
    const manifest = parse(ref.manifest);
    const config = parse(manifest.config.digest);
    const names = [...Object.keys(config.lazarus), "rootfs"];
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...names), fc.boolean(), (value, name, inManifest) => {
        const damaged =
          name === "rootfs"
            ? { ...config, rootfs: value }
            : { ...config, lazarus: { ...config.lazarus, [name]: value } };
        const candidates = inManifest
          ? [forged(value), forged({ ...manifest, layers: value }), forged({ ...manifest, layers: [value] })]
          : [
              forged(manifest, value),
              forged(manifest, { ...config, lazarus: value }),
              forged(manifest, damaged),
            ];
        for (const candidate of candidates) {
          try {
            const { metadata, layers } = readCheckpoint(context.vault, candidate);
            expect([metadata.flaws, metadata.excluded, layers].every(Array.isArray)).toBe(true);
          } catch (error) {
            expect(error).toBeInstanceOf(LazarusError);
            expect((error as LazarusError).kind).toMatch(/^(damaged|unsupported)$/);
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});
