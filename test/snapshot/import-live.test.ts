// Import of live points from a copied vault: the same files as a restore of the point, as the independent lister sees them.
import { appendFileSync, cpSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { createLab, type Lab } from "./lab.ts";
import { listTree } from "./list-tree.ts";

const LIVE = { reason: "live", git: "deferred", onlyIfChanged: true } as const;

const OWNERS = process.getuid?.() === 0;

/** Points that add, remove, link and continue files. */
async function createPoints(): Promise<{ lab: Lab; ids: string[]; copy: string }> {
  const lab = createLab();
  mkdirSync(join(lab.cell, "meta"));
  writeFileSync(join(lab.cell, "meta", "mission.json"), "{}");
  const at = (path: string) => join(lab.worktree, path);
  writeFileSync(at("agent.log"), "x".repeat(300_000));
  mkdirSync(at("a/b"), { recursive: true });
  writeFileSync(at("a/b/one"), "1");
  const ids = [(await lab.checkpoint()).ref.id];
  const point = async (change: () => void) => {
    change();
    ids.push((await lab.checkpoint(LIVE)).ref.id);
  };
  await point(() => appendFileSync(at("agent.log"), "first\n"));
  await point(() => {
    appendFileSync(at("agent.log"), "second\n");
    linkSync(at("a/b/one"), at("two"));
    symlinkSync("nowhere", at("link"));
  });
  await point(() => {
    rmSync(at("a"), { recursive: true });
    writeFileSync(at(".wh.name"), "looks like a whiteout");
  });
  const copy = join(lab.directory, "copied vault");
  cpSync(lab.context.vault.root, copy, { recursive: true });
  return { lab, ids, copy };
}

const inWorktree = (directory: string) => listTree(join(directory, "worktree"));

it("an import has the files that a restore of the point has; by default, of the newest point", async () => {
  const { lab, ids, copy } = await createPoints();
  using _ = lab;
  const { vault } = lab.context;
  const layers = vault.list().flatMap((ref) => readCheckpoint(vault, ref).layers);
  expect(layers.some(({ isContinued }) => isContinued)).toBe(true);
  for (const [i, tag] of [...ids, undefined].entries()) {
    const target = join(lab.directory, `restored-${i}`);
    await restoreTo(lab.context, { checkpoint: tag ?? ids.at(-1)!, directory: target });
    const imported = lab.with({ mission: `copy-${i}` });
    const { lost, as } = await importCell(imported.context, { source: copy, tag, owners: OWNERS });
    expect({ lost, as }).toEqual({ lost: [], as: "cell" });
    expect(inWorktree(imported.cell)).toEqual(inWorktree(target));
    expect(imported.context.vault.list()).toHaveLength(1);
  }
});

it("an import of a point whose record or layer is damaged fails, and imports nothing", async () => {
  const { lab, ids, copy } = await createPoints();
  using _ = lab;
  const ref = lab.context.vault.list().find(({ id }) => id === ids[2])!;
  const layer = readCheckpoint(lab.context.vault, ref).layers.at(-1)!.digest;
  for (const [i, digest] of [layer, ref.manifest].entries()) {
    const file = join(copy, "blobs", "sha256", digest.slice("sha256:".length));
    writeFileSync(file, "damaged");
    const imported = lab.with({ mission: `bad-${i}` });
    await expect(importCell(imported.context, { source: copy, tag: ids[2], owners: OWNERS })).rejects.toThrow(
      /damaged|digest|cannot be read|does not match/,
    );
    expect(imported.context.vault.list()).toEqual([]);
  }
});

it("an import counts the bytes that it unpacks", async () => {
  const { lab, ids, copy } = await createPoints();
  using _ = lab;
  const imported = lab.with({ mission: "large" });
  const options = { source: copy, tag: ids[2], owners: OWNERS, limits: { maxBytes: 100_000 } };
  await expect(importCell(imported.context, options)).rejects.toThrow("inflates to more than 100000 bytes");
});
