// Files that grow: live points store what was appended, and everything else sees whole files.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { readToc } from "../../src/snapshot/vault/layer-table.ts";
import { layerSource, readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { SEED } from "../seed.ts";
import { runContinued } from "./continued-rounds.ts";
import { createLab, type Lab, vaultFiles } from "./lab.ts";

const LIVE = { reason: "live", git: "deferred", onlyIfChanged: true } as const;
const text = (length: number) => randomBytes(length).toString("base64").slice(0, length);

/** A cell with a log, a checkpoint, and live points after it. */
async function growingLab(
  points: number,
  length = 1_000_000,
): Promise<{ lab: Lab; log: string; versions: string[] }> {
  const lab = createLab();
  const log = join(lab.worktree, "agent.log");
  writeFileSync(log, text(length));
  await lab.checkpoint();
  const versions: string[] = [];
  for (let i = 0; i < points; i += 1) {
    appendFileSync(log, text(4000));
    await lab.checkpoint(LIVE);
    versions.push(readFileSync(log, "latin1"));
  }
  return { lab, log, versions };
}

const vaultBytes = (lab: Lab) =>
  [...vaultFiles(lab.context.vault.root).values()].reduce((sum, size) => sum + size, 0);
const isContinued = (lab: Lab, id: string) => {
  const ref = lab.context.vault.list().find((each) => each.id === id)!;
  return readCheckpoint(lab.context.vault, ref).layers.some((layer) => layer.isContinued);
};

describe.concurrent("every point equals the cell at that time", () => {
  it(`through merges of live points (seed ${SEED})`, () =>
    runContinued(SEED, { livePoints: 52, mixed: 0, compression: "gzip" }));
  it(`between ordinary checkpoints and prunes (seed ${SEED})`, () =>
    runContinued(SEED, { livePoints: 10, mixed: 30, compression: "zstd" }));
});

describe("a file that has grown", () => {
  it("costs what was appended", async () => {
    const { lab } = await growingLab(1);
    using _ = lab;
    const before = vaultBytes(lab);
    appendFileSync(join(lab.worktree, "agent.log"), text(4000));
    await lab.checkpoint(LIVE);
    expect(vaultBytes(lab) - before).toBeLessThan(6000);
  });

  it("is whole in every checkpoint that is not a live point, even for tar", async () => {
    const { lab, log, versions } = await growingLab(3);
    using _ = lab;
    const live = lab.context.vault.list().at(-1)!;
    expect(isContinued(lab, live.id)).toBe(true);
    const { ref, outcome } = await lab.checkpoint();
    expect(outcome).toBe("unchanged");
    expect(isContinued(lab, ref.id)).toBe(false);
    const directory = join(lab.directory, "plain");
    execFileSync("mkdir", [directory]);
    for (const { digest } of readCheckpoint(lab.context.vault, ref).layers)
      execFileSync("tar", ["xzf", lab.context.vault.blobPath(digest), "-C", directory]);
    expect(readFileSync(join(directory, "worktree", "agent.log"), "latin1")).toBe(versions.at(-1));
    const archive = join(lab.directory, "live.tar.gz");
    await exportToFile(lab.context, live, archive);
    const exported = execFileSync("tar", ["xzOf", archive, "worktree/agent.log"], { maxBuffer: 2 ** 24 });
    expect(exported.toString("latin1")).toBe(readFileSync(log, "latin1"));
  });

  it("is restored in place from every point, and undone", async () => {
    const { lab, log, versions } = await growingLab(4, 100_000);
    using _ = lab;
    const points = lab.context.vault.list().slice(1);
    for (const [i, { id }] of points.entries()) {
      await restoreCell(lab.context, { checkpoint: id });
      expect(readFileSync(log, "latin1")).toBe(versions[i]);
    }
  });

  it("is stored again when it changed before its end, or was cut and grew again", async () => {
    const { lab, log } = await growingLab(1);
    using _ = lab;
    truncateSync(log, 200_000);
    appendFileSync(log, text(900_000));
    const { ref } = await lab.checkpoint(LIVE);
    expect(lab.text("worktree/agent.log", ref.id)).toBe(readFileSync(log, "latin1"));
    await lab.verify();
  });

  it("stays readable when the points that it continues are pruned", async () => {
    const { lab, versions } = await growingLab(4);
    using _ = lab;
    const refs = lab.context.vault.list();
    lab.context.vault.publish(refs.slice(-1));
    await prune(lab.context);
    await lab.verify();
    expect(lab.text("worktree/agent.log", refs.at(-1)!.id)).toBe(versions.at(-1));
  });

  it("whose earlier bytes are damaged in the vault is found by verify --deep", async () => {
    const { lab } = await growingLab(2);
    using _ = lab;
    const { vault } = lab.context;
    const base = readCheckpoint(vault, vault.list()[0]!).layers.at(-1)!;
    const file = vault.blobPath(base.digest);
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(file, bytes);
    const { good } = await verifyVault(vault, { deep: true });
    expect(good).toEqual([]);
  });

  it("has a table of contents that earlier versions refuse", async () => {
    const { lab } = await growingLab(1);
    using _ = lab;
    const { vault } = lab.context;
    const layer = readCheckpoint(vault, vault.list().at(-1)!).layers.at(-1)!;
    const { entries } = readToc(layerSource(vault, layer));
    expect(entries.find(({ path }) => path === "worktree/agent.log")).toMatchObject({
      after: 1_000_000,
      length: 4000,
      size: 1_004_000,
    });
    const listed = execFileSync("tar", ["tzf", vault.blobPath(layer.digest)], { encoding: "utf8" });
    expect(listed).toContain("worktree/.lazarus-from-1000000-agent.log");
    expect(listed).not.toContain("worktree/agent.log");
  });
});
