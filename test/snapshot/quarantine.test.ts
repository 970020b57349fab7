// Damage to the newest checkpoint: the operation that finds it sets the damaged blob aside, and the next checkpoint stores
// everything again, although nothing in the cell has changed.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { drill } from "../../src/snapshot/operations/drill.ts";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { createRandom } from "../../src/testing/index.ts";
import { createLab, type Lab, removeTree } from "./lab.ts";

/** Incompressible, so that a flipped bit hits this file's content and nothing else. */
const NOISE = createRandom(5).bytes(3 << 20);
const KEEP_ONE = {
  keep_last: 1,
  keep_hourly: 0,
  keep_daily: 0,
  keep_weekly: 0,
  keep_within_seconds: 0,
  max_bytes: 0,
};

/** A checkpoint with a flipped bit in the content of `noise`; size and table of contents are intact. */
async function damagedLab(): Promise<{ lab: Lab; id: string; layer: string }> {
  const lab = createLab({ document: { retention: { auto: false } } });
  writeFileSync(join(lab.worktree, "noise"), NOISE);
  writeFileSync(join(lab.worktree, "good"), "good");
  const { ref, checkpoint } = await lab.checkpoint();
  const layer = checkpoint.layers[0]!.digest;
  const file = lab.context.vault.blobPath(layer);
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(file, bytes);
  return { lab, id: ref.id, layer };
}

const setAside = (lab: Lab) => {
  try {
    return readdirSync(join(lab.context.vault.root, "lazarus", "quarantine"));
  } catch {
    return [];
  }
};

const FINDERS: Readonly<Record<string, (lab: Lab) => Promise<unknown>>> = {
  "verify --deep": (lab) => verifyVault(lab.context.vault, { deep: true }),
  "restore --to": (lab) => restoreTo(lab.context, { directory: join(lab.directory, "to") }),
  restore(lab) {
    writeFileSync(join(lab.worktree, "noise"), "overwritten by mistake");
    return restoreCell(lab.context, {});
  },
  drill: (lab) => drill(lab.context),
  export: (lab) =>
    exportToFile(lab.context, lab.context.vault.list().at(-1)!, join(lab.directory, "export.tar.gz")),
};

describe("damage to the newest checkpoint", () => {
  for (const [name, find] of Object.entries(FINDERS)) {
    it(`is repaired by the next checkpoint after ${name} has found it`, async () => {
      const { lab, layer } = await damagedLab();
      using _ = lab;
      await find(lab).catch((error) => expect(error.kind).toBe("damaged"));
      expect(setAside(lab)).toEqual([layer.slice("sha256:".length)]);
      const { ref, outcome, flaws } = await lab.checkpoint();
      expect(outcome).toBe("captured");
      expect(flaws).toMatchObject([
        { path: ".", kind: "degraded", reason: expect.stringContaining("stored again") },
      ]);
      const directory = await lab.restored(ref.id);
      removeTree(directory);
      const { good, newestGood } = await verifyVault(lab.context.vault, { deep: true });
      expect(newestGood).toBe(ref.id);
      expect(good).toContain(ref.id);
      expect((await lab.checkpoint()).flaws).toEqual([]);
    });
  }

  it("is also set aside by a checkpoint that finds it", async () => {
    using lab = createLab();
    writeFileSync(join(lab.worktree, "f"), "f");
    const { checkpoint } = await lab.checkpoint();
    const file = lab.context.vault.blobPath(checkpoint.layers[0]!.digest);
    writeFileSync(file, readFileSync(file).subarray(0, -1));
    expect((await lab.checkpoint()).flaws).toHaveLength(1);
    expect(setAside(lab)).toHaveLength(1);
    expect((await lab.checkpoint()).flaws).toEqual([]);
  });

  it("keeps the damaged blob as evidence: its intact files can still be restored, and verify names the others", async () => {
    const { lab, id, layer } = await damagedLab();
    using _ = lab;
    await verifyVault(lab.context.vault, { deep: true });
    const directory = join(lab.directory, "some");
    await restoreTo(lab.context, { checkpoint: id, directory, paths: ["worktree/good"] });
    expect(readFileSync(join(directory, "worktree/good"), "utf8")).toBe("good");
    const { findings } = await verifyVault(lab.context.vault, { deep: true });
    expect(findings.map(({ object }) => object)).toContain(`layer ${layer}`);
    expect(findings.map(({ problem }) => problem).join()).toContain("set aside");
    expect(findings.flatMap(({ paths }) => paths)).toContain("worktree/noise");
    await expect(
      forkMission(lab.context, lab.with({ mission: "fork" }).context, { at: id }),
    ).rejects.toMatchObject({ kind: "damaged" });
  });

  it("does not prevent a fork of a checkpoint whose own files are intact, and is not passed on to it", async () => {
    const { lab } = await damagedLab();
    using _ = lab;
    rmSync(join(lab.worktree, "noise"));
    const { ref } = await lab.checkpoint();
    await verifyVault(lab.context.vault, { deep: true });
    const fork = lab.with({ mission: "fork" }).context;
    const { flaws } = await forkMission(lab.context, fork, { at: ref.id });
    expect(flaws).toEqual([]);
    expect(readFileSync(join(fork.cellRoot, "worktree", "good"), "utf8")).toBe("good");
    expect((await verifyVault(fork.vault, { deep: true })).findings).toEqual([]);
  });

  it("is removed by a prune after the blob was stored again, or when no checkpoint needs it", async () => {
    const { lab } = await damagedLab();
    using _ = lab;
    await verifyVault(lab.context.vault, { deep: true });
    await lab.checkpoint();
    await prune(lab.context, { policy: KEEP_ONE });
    expect(setAside(lab)).toEqual([]);
    await lab.verify();
  });
});

it("an intact blob is never set aside", async () => {
  using lab = createLab();
  const { checkpoint, ref } = await lab.checkpoint();
  for (const digest of [...checkpoint.documents, ...checkpoint.layers.map((layer) => layer.digest)])
    expect(lab.context.vault.quarantine.add(digest)).toBe(false);
  expect(setAside(lab)).toEqual([]);
  expect(readCheckpoint(lab.context.vault, ref)).toMatchObject({ documents: checkpoint.documents });
});
