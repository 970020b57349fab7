// Vaults read by other tools: skopeo must find the checkpoint, and umoci and tar must unpack exactly the cell, compared by
// code that is independent of Lazarus. Tests of a missing tool are skipped with a message.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { type MissionContext, openMissionContext } from "../../src/snapshot/mission-context.ts";
import type { CheckpointRef } from "../../src/snapshot/model/entry.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { isRoot } from "../plain-user.ts";
import { CHANGES, canList, type ListedPath, listTree, makeRealCell } from "./real-cell.ts";
import { isInstalled } from "./tools.ts";
import { unpackWithUmoci, withRecordedOwner } from "./umoci.ts";

const has = {
  skopeo: isInstalled("skopeo", "vaults read by skopeo"),
  umoci: isInstalled("umoci", "vaults unpacked by umoci"),
  tar: isInstalled("tar", "layers and archives read by tar"),
};

describe.skipIf(!canList())("a vault after several deltas", () => {
  let home: string;
  const states: { ref: CheckpointRef; tree: ListedPath[] }[] = [];
  let context: MissionContext;

  const openMission = (mission: string, compression: "gzip" | "zstd" = "gzip"): MissionContext => {
    const effective = loadConfig({ env: { LAZARUS_HOME: join(home, "lazarus") }, cwd: home, isRoot });
    const document = { snapshot: { compression }, retention: { auto: false } };
    return openMissionContext(systemMachine, { ...effective, document }, parseMissionId(mission), {
      version: "0",
      environment: process.env,
    });
  };

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "lazarus-oci-"));
    context = openMission("m");
    const worktree = makeRealCell(context);
    const save = async () => {
      const { ref, flaws } = await takeCheckpoint(context, { reason: "manual" });
      expect(flaws).toEqual([]);
      states.push({ ref, tree: listTree(context.cellRoot) });
    };
    await save();
    for (const change of CHANGES) {
      change(worktree);
      await save();
    }
    expect(readCheckpoint(context.vault, states.at(-1)!.ref).layers.length).toBeGreaterThan(3);
  });

  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it.skipIf(!has.skopeo)("is a valid image layout for skopeo", () => {
    for (const { ref } of states) {
      const image = `oci:${context.vault.root}:${ref.id}`;
      const seen = JSON.parse(execFileSync("skopeo", ["inspect", image], { encoding: "utf8" }));
      const { layers, documents } = readCheckpoint(context.vault, ref);
      expect(seen.Digest).toBe(ref.manifest);
      expect(seen.Layers).toEqual(layers.map(({ digest }) => digest));
      const raw = execFileSync("skopeo", ["inspect", "--config", "--raw", image]);
      expect(JSON.parse(raw.toString("utf8")).lazarus.checkpoint_id).toBe(ref.id);
      expect(documents).toEqual([ref.manifest, expect.stringMatching(/^sha256:/)]);
    }
  });

  it.skipIf(!has.umoci)("unpacks with umoci to exactly the captured trees", () => {
    for (const [i, { ref, tree }] of states.entries()) {
      const files = unpackWithUmoci(`${context.vault.root}:${ref.id}`, join(home, `bundle-${i}`));
      expect(forUmoci(listTree(files).map(withRecordedOwner))).toEqual(forUmoci(tree.map(escapeWhiteouts)));
    }
  });

  it.skipIf(!has.tar)("exports archives that plain tar unpacks to exactly the captured trees", async () => {
    for (const [i, { ref, tree }] of states.entries()) {
      const file = join(home, `export-${i}.tar.gz`);
      const target = join(home, `untar-${i}`);
      mkdirSync(target);
      await exportToFile(context, ref, file);
      execFileSync("tar", ["-C", target, "--xattrs", "--xattrs-include=*", "-xpzf", file]);
      expect(listTree(target)).toEqual(tree);
    }
  });

  it.skipIf(!has.tar)("has a first layer that tar reads without a warning", () => {
    const { layers } = readCheckpoint(context.vault, states[0]!.ref);
    const blob = context.vault.blobPath(layers[0]!.digest);
    const names = execFileSync("tar", ["-tzf", blob], { encoding: "latin1" }).trimEnd().split("\n");
    expect(names).toContain("worktree/README");
    expect(names.some((name) => name.includes(".lazarus.wh.looks-like-a-whiteout"))).toBe(true);
    expect(
      execFileSync("gzip", ["-t", "-v", "-c"], {
        input: readFileSync(blob),
        stdio: ["pipe", "pipe", "pipe"],
      }),
    ).toBeDefined();
  });

  it("can be imported from an archive and from the layout itself, gzip and zstd", async () => {
    const [last] = states.slice(-1);
    const zstd = openMission("z", "zstd");
    // The seed files contain the mission's name; everything else must be the same.
    const seeds = ["meta", "config", "state"];
    const same = (mission: MissionContext, tree: string) =>
      expect(listTree(mission.cellRoot, ...seeds)).toEqual(listTree(tree, ...seeds));
    const fromArchive = openMission("from-archive");
    const file = join(home, "again.tar.gz");
    await exportToFile(context, last!.ref, file);
    const options = { owners: isRoot, trusted: true };
    await importCell(fromArchive, { source: file, ...options });
    same(fromArchive, context.cellRoot);
    const fromLayout = openMission("from-layout");
    await importCell(fromLayout, { source: context.vault.root, tag: last!.ref.id, ...options });
    same(fromLayout, context.cellRoot);
    const worktree = makeRealCell(zstd);
    await takeCheckpoint(zstd, { reason: "manual" });
    CHANGES[0]!(worktree);
    await takeCheckpoint(zstd, { reason: "manual" });
    const fromZstd = openMission("from-zstd");
    await importCell(fromZstd, { source: zstd.vault.root, ...options });
    same(fromZstd, zstd.cellRoot);
  });
});

/** In a layer, real names that look like whiteouts are escaped. */
function escapeWhiteouts(row: ListedPath): ListedPath {
  return { ...row, path: row.path.replace(/(^|\/)((?:\.lazarus)*\.wh\.)/g, "$1.lazarus$2") };
}

/** umoci writes holes as zeros; everything else must be equal. */
function forUmoci(tree: readonly ListedPath[]): unknown[] {
  return tree.map(({ holes: _, ...row }) => row).sort((a, b) => (a.path < b.path ? -1 : 1));
}
