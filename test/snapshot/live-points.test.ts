// Live points in the vault: small records instead of manifests, which behave like every other checkpoint.
import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { systemDisk } from "../../src/platform/disk.ts";
import type { CheckpointRef } from "../../src/snapshot/model/entry.ts";
import { setPin } from "../../src/snapshot/operations/pin.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { encodeIndex } from "../../src/snapshot/vault/index-json.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { repairIndex } from "../../src/snapshot/vault/repair-index.ts";
import { createFaultyDisk } from "../../src/testing/faulty-disk.ts";
import { createLab, type Lab, listCell, OLD_MS, removeTree, vaultFiles } from "./lab.ts";
import { listTree } from "./list-tree.ts";

const LIVE = { reason: "live", git: "deferred", onlyIfChanged: true } as const;

interface Point {
  readonly ref: CheckpointRef;
  readonly tree: readonly string[];
}

const change = (lab: Lab, i: number) =>
  writeFileSync(join(lab.worktree, `f${i % 7}.txt`), `change ${i}\n${randomBytes(100).toString("hex")}\n`);

async function takePoints(lab: Lab, count: number): Promise<Point[]> {
  const points: Point[] = [];
  for (let i = 0; i < count; i += 1) {
    change(lab, i);
    const { ref } = await lab.checkpoint(LIVE);
    points.push({ ref, tree: listCell(lab) });
  }
  return points;
}

async function expectRestorable(lab: Lab, points: readonly Point[]): Promise<void> {
  for (const { ref, tree } of points) {
    const directory = await lab.restored(ref.id);
    expect(listTree(directory), ref.id).toEqual(tree);
    removeTree(directory);
  }
}

describe("a live point", () => {
  it("costs at most 4 KB beyond its compressed change", async () => {
    using lab = createLab();
    for (let i = 0; i < 100; i += 1)
      writeFileSync(join(lab.worktree, `f${i}`), randomBytes(1024).toString("hex"));
    await lab.checkpoint();
    const bytes = () => [...vaultFiles(lab.context.vault.root).values()].reduce((sum, size) => sum + size, 0);
    const before = bytes();
    const points = 100;
    let changed = 0;
    for (let i = 0; i < points; i += 1) {
      const text = randomBytes(1024).toString("hex");
      changed += gzipSync(text).length;
      writeFileSync(join(lab.worktree, `f${i}`), text);
      await lab.checkpoint(LIVE);
    }
    expect((bytes() - before - changed) / points).toBeLessThanOrEqual(4096);
  });

  it("syncs its layer, its record, then their names, then the index, and nothing else", async () => {
    const disk = createFaultyDisk(systemDisk);
    using lab = createLab({ machine: { disk } });
    await lab.checkpoint();
    change(lab, 0);
    await lab.checkpoint(LIVE);
    change(lab, 1);
    const before = disk.calls.length;
    await lab.checkpoint(LIVE);
    const synced = disk.calls
      .slice(before)
      .filter(({ method }) => method === "fsync" || method === "fsyncDirectory")
      .map(({ path }) =>
        relative(lab.context.vault.root, path).replace(/\.[0-9a-f]{64}\..*\.tmp$/, "record"),
      );
    expect(synced).toEqual([
      "lazarus/scratch/layer",
      "blobs/sha256/record",
      "blobs/sha256",
      expect.stringMatching(/^\.index\.json\..*\.tmp$/),
      "",
    ]);
  });

  it("is restored exactly, through merged layers and chains of records", async () => {
    using lab = createLab();
    await lab.checkpoint();
    const points = await takePoints(lab, 60);
    expect(points.every(({ ref }) => ref.isRecord)).toBe(true);
    const layers = points.map(({ ref }) => readCheckpoint(lab.context.vault, ref).layers.length);
    expect(layers.some((count, i) => count < layers[i - 1]!)).toBe(true);
    await lab.verify();
    await expectRestorable(
      lab,
      points.filter((_, i) => i % 7 === 0),
    );
  });

  it("is followed by a checkpoint with a manifest, even when nothing changed", async () => {
    using lab = createLab();
    await lab.checkpoint();
    const [point] = await takePoints(lab, 1);
    const { ref, outcome } = await lab.checkpoint();
    expect(outcome).toBe("unchanged");
    expect(ref.isRecord).toBe(undefined);
    expect(readCheckpoint(lab.context.vault, ref).layers).toEqual(
      readCheckpoint(lab.context.vault, point!.ref).layers,
    );
    // The stat cache belongs to the new manifest: nothing is stored again.
    expect((await lab.checkpoint(LIVE)).ref.id).toBe(ref.id);
    await lab.verify();
  });

  it("whose record is damaged affects the points that build on it, and the next one stores everything", async () => {
    using lab = createLab();
    const whole = await lab.checkpoint();
    const points = await takePoints(lab, 4);
    const { vault } = lab.context;
    const file = vault.blobPath(points[1]!.ref.manifest);
    const bytes = readFileSync(file);
    bytes[20]! ^= 1;
    writeFileSync(file, bytes);
    const { findings, hurt, good } = await verifyVault(vault);
    expect(findings.map(({ object }) => object)).toContain(`record ${points[1]!.ref.manifest}`);
    expect(hurt).toEqual(points.slice(1).map(({ ref }) => ref.id));
    expect(good).toEqual([whole.ref.id, points[0]!.ref.id]);
    change(lab, 9);
    const { ref, flaws } = await lab.checkpoint(LIVE);
    expect(flaws.map(({ reason }) => reason).join()).toContain("everything was stored again");
    await expectRestorable(lab, [points[0]!, { ref, tree: listCell(lab) }]);
  });

  it("that outlives its first hour or is pinned gets a manifest; the records that it was built on are removed", async () => {
    let offsetMs = OLD_MS;
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs };
    using lab = createLab({ machine: { clock } });
    await lab.checkpoint();
    const points = await takePoints(lab, 6);
    await setPin(lab.context, points[2]!.ref.id, true);
    offsetMs += 3 * 3_600_000;
    const young = await takePoints(lab, 2);
    const refs = lab.context.vault.list();
    // The first checkpoint, the pinned point, the newest of its ten minutes, and those of the last hour.
    expect(refs.slice(-4).map(({ id }) => id)).toEqual(
      [points[2]!, points[5]!, ...young].map(({ ref }) => ref.id),
    );
    expect(refs.slice(-4).map(({ isRecord }) => isRecord === true)).toEqual([false, false, true, true]);
    await lab.verify();
    const kept = [points[2]!, points[5]!, ...young];
    await expectRestorable(lab, kept);
    const last = await takePoints(lab, 25);
    for (let hours = 0; hours < 2; hours += 1) {
      offsetMs += 3 * 3_600_000;
      last.push(...(await takePoints(lab, 2)));
    }
    await lab.verify();
    for (const { ref } of points) expect(lab.context.vault.has(ref.manifest)).toBe(false);
    await expectRestorable(lab, [points[2]!, points[5]!, last.at(-1)!]);
  });

  it("is found again when the index is lost", async () => {
    using lab = createLab();
    await lab.checkpoint();
    const points = await takePoints(lab, 3);
    const ids = lab.context.vault.list().map(({ id }) => id);
    rmSync(join(lab.context.vault.root, "index.json"));
    await repairIndex(lab.context.machine, lab.context.vault);
    expect(lab.context.vault.list().map(({ id }) => id)).toEqual(ids);
    expect(lab.context.vault.list().map(({ isRecord }) => isRecord === true)).toEqual([
      false,
      true,
      true,
      true,
    ]);
    await expectRestorable(lab, points);
    await lab.verify();
  });
});

it("an index that another process replaced is read again, even with the same size", async () => {
  using lab = createLab();
  await lab.checkpoint({ message: "one" });
  const { vault } = lab.context;
  for (const message of ["two", "six", "ten"]) {
    const [ref] = vault.list();
    const temporary = join(vault.root, "other");
    writeFileSync(temporary, encodeIndex([{ ...ref!, message }]));
    renameSync(temporary, join(vault.root, "index.json"));
    expect(vault.list().map((each) => each.message)).toEqual([message]);
  }
});
