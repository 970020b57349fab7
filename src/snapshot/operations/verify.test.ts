import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BASE,
  blobFile,
  initializedContext,
  makeLayer,
  publishCheckpoint,
  seededMachine,
} from "../../../test/snapshot/hand-made.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { findIntact } from "../vault/check-blobs.ts";
import { zstdCodec } from "../vault/codec.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { verifyVault } from "./verify.ts";

let home: string;
let context: MissionContext;
let refs: CheckpointRef[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-verify-"));
  const machine = seededMachine();
  context = await initializedContext(machine, home);
  const base = makeLayer(context, BASE);
  const delta = makeLayer(
    context,
    [{ path: "worktree/a.txt", content: "alpha 2\n" }],
    ["worktree/empty"],
    zstdCodec,
  );
  const worktree = { path: "worktree", type: "directory" } as const;
  const other = makeLayer(context, [worktree, { path: "worktree/new", content: "news\n" }]);
  refs = [];
  for (const layers of [[base], [base, delta], [other]]) {
    refs.push(publishCheckpoint(context, layers));
    await machine.clock.advance(5000);
  }
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const layerOf = (i: number, n: number) => readCheckpoint(context.vault, refs[i]!).layers[n]!.digest;

function flip(file: string, at: number, mask = 1): void {
  const bytes = readFileSync(file);
  bytes[at < 0 ? bytes.length + at : at]! ^= mask;
  writeFileSync(file, bytes);
}

describe("verify", () => {
  it("finds no faults in an intact vault, quick and deep", async () => {
    for (const deep of [false, true]) {
      const found = await verifyVault(context.vault, { deep });
      expect(found.findings).toEqual([]);
      expect(found).toMatchObject({ checkpoints: 3, newestGood: refs[2]!.id, hurt: [] });
    }
  });

  it("finds a tree that cannot be restored, in this and in later checkpoints, although every byte is intact", async () => {
    const { layers } = readCheckpoint(context.vault, refs[1]!);
    const link = makeLayer(context, [{ path: "worktree", type: "symlink", target: "elsewhere" }]);
    const bad = publishCheckpoint(context, [...layers, link]);
    const more = makeLayer(context, [{ path: "another", content: "x" }]);
    const later = publishCheckpoint(context, [...layers, link, more]);
    for (const deep of [false, true]) {
      const { findings, hurt, newestGood } = await verifyVault(context.vault, { deep });
      expect(hurt).toEqual([bad.id, later.id]);
      expect(newestGood).toBe(refs[2]!.id);
      expect(findings[0]?.problem).toMatch(/cannot be restored: "worktree\/[^"]+" is below a symlink/);
    }
  });

  it("treats a missing vault as intact and empty", async () => {
    rmSync(context.vault.root, { recursive: true });
    expect(await verifyVault(context.vault)).toMatchObject({
      checkpoints: 0,
      findings: [],
      newestGood: null,
    });
  });

  it("names a missing layer, the checkpoints that need it, and the newest good one", async () => {
    rmSync(blobFile(context, layerOf(2, 0)));
    const found = await verifyVault(context.vault);
    expect(found.findings).toMatchObject([
      { object: `layer ${layerOf(2, 0)}`, problem: "is missing", hurts: [refs[2]!.id] },
    ]);
    expect(found.newestGood).toBe(refs[1]!.id);
    expect((await findIntact(context.vault, context.vault.list().toReversed(), { deep: false }))?.id).toBe(
      refs[1]!.id,
    );
  });

  it("reports every checkpoint that needs a damaged shared layer", async () => {
    truncateSync(blobFile(context, layerOf(0, 0)), 500);
    const found = await verifyVault(context.vault);
    expect(found.hurt).toEqual([refs[0]!.id, refs[1]!.id]);
    expect(found.newestGood).toBe(refs[2]!.id);
  });

  it("deep: finds a flipped bit in a member and names the damaged files", async () => {
    flip(blobFile(context, layerOf(0, 0)), 300);
    expect((await verifyVault(context.vault)).findings).toEqual([]);
    const { findings } = await verifyVault(context.vault, { deep: true });
    expect(findings.length).toBeGreaterThan(0);
    expect(findings.some(({ problem }) => problem.includes("hashes to sha256:"))).toBe(true);
    expect((await findIntact(context.vault, refs.slice(0, 2).reverse(), { deep: true }))?.id).toBeUndefined();
  });

  it("quick: finds a flipped bit in the table of contents, the footer, a manifest and a config", async () => {
    const checkpoint = readCheckpoint(context.vault, refs[0]!);
    for (const [file, at] of [
      [blobFile(context, layerOf(0, 0)), -3],
      [blobFile(context, layerOf(0, 0)), -15],
      [blobFile(context, layerOf(0, 0)), -120],
      [blobFile(context, refs[0]!.manifest), 40],
      [blobFile(context, checkpoint.documents[1]!), 40],
    ] as const) {
      const before = readFileSync(file);
      flip(file, at);
      const { findings, good } = await verifyVault(context.vault, { deep: true });
      expect(findings.length, `${file} at ${at}`).toBeGreaterThan(0);
      expect(good).not.toContain(refs[0]!.id);
      writeFileSync(file, before);
    }
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
  });

  it("reports a damaged index, and checks the checkpoints through their manifests", async () => {
    flip(join(context.vault.root, "index.json"), 200);
    const found = await verifyVault(context.vault, { deep: true });
    expect(found.findings[0]?.object).toBe("index.json");
    expect(found.newestGood).toBe(refs[2]!.id);
  });

  it("reports a missing oci-layout, which damages no checkpoint", async () => {
    rmSync(join(context.vault.root, "oci-layout"));
    const found = await verifyVault(context.vault);
    expect(found.findings).toMatchObject([{ object: "oci-layout", hurts: [] }]);
    expect(found.hurt).toEqual([]);
  });

  it("does not report a checkpoint that was pruned in the meantime", async () => {
    const { vault } = context;
    const gone = layerOf(2, 0);
    let raced = false;
    const racing = {
      ...vault,
      read(digest: string) {
        if (!raced) {
          raced = true;
          vault.publish(refs.slice(0, 2));
          rmSync(blobFile(context, gone));
        }
        return vault.read(digest);
      },
    };
    const found = await verifyVault(racing);
    expect(found.findings).toEqual([]);
    expect(found.checkpoints).toBe(2);
  });
});
