// The gate that a checkpoint passes before it is published: what cannot be restored is not published.
import fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { passGate } from "../../src/snapshot/capture/gate.ts";
import type { CapturedItem } from "../../src/snapshot/model/capture-item.ts";
import { ChangedRows, rowsFromListing } from "../../src/snapshot/scan/changed-rows.ts";
import { createUnknownRow } from "../../src/snapshot/scan/stat-row.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { type Draft, draftEntry, makeLayer, publishCheckpoint } from "./hand-made.ts";
import { createLab, type Lab, removeTree } from "./lab.ts";

function captured(drafts: readonly Draft[]): Map<string, CapturedItem> {
  const mark = { ctimeMs: 0, ino: 1, nlink: 1 };
  return new Map(drafts.map((draft) => [draft.path, { entry: draftEntry(draft), mark }]));
}

/** Passes a layer with these changes through the gate, and publishes the result. */
function publishThroughGate(lab: Lab, drafts: readonly Draft[], removed: readonly string[] = []) {
  const { context } = lab;
  const head = readCheckpoint(context.vault, context.vault.list().at(-1)!);
  const below = rowsFromListing(lab.listing());
  const layer = makeLayer(context, drafts, removed);
  const passed = passGate(context, { layers: [layer], captured: captured(drafts), below, rows: below });
  return { passed, ref: publishCheckpoint(context, [...head.layers, ...passed.layers]) };
}

async function labWithFiles(): Promise<Lab> {
  const lab = createLab();
  fs.mkdirSync(join(lab.worktree, "d/e"), { recursive: true });
  for (const name of ["d/e/f", "d/g", "h"]) fs.writeFileSync(join(lab.worktree, name), name);
  await lab.checkpoint();
  return lab;
}

it("a restorable layer passes unchanged", async () => {
  using lab = await labWithFiles();
  const { passed, ref } = publishThroughGate(
    lab,
    [{ path: "worktree/d/new", content: "new" }],
    ["worktree/h"],
  );
  expect(passed).toMatchObject({ flaws: [], areRowsExact: true });
  expect(passed.layers).toHaveLength(1);
  removeTree(await lab.restored(ref.id));
});

it("paths that could not be restored are left out and named, with everything below them", async () => {
  using lab = await labWithFiles();
  const { passed, ref } = publishThroughGate(lab, [
    // A link over a directory whose contents are still in the checkpoint below, with new paths behind it.
    { path: "worktree/d", type: "symlink", target: "elsewhere" },
    { path: "worktree/d/new", type: "directory" },
    { path: "worktree/d/new/file", content: "x" },
    { path: "worktree/orphan/file", content: "y" },
    { path: "worktree/good", content: "z" },
  ]);
  expect(passed.areRowsExact).toBe(false);
  expect(passed.flaws.map(({ path }) => path).sort()).toEqual([
    "worktree/d/e",
    "worktree/d/e/f",
    "worktree/d/g",
    "worktree/d/new",
    "worktree/d/new/file",
    "worktree/orphan/file",
  ]);
  expect(passed.flaws[0]).toMatchObject({ kind: "skipped", reason: expect.stringContaining("is below a") });
  await lab.verify();
  const directory = await lab.restored(ref.id);
  expect(fs.readdirSync(join(directory, "worktree")).sort()).toEqual(["d", "good", "h"]);
  removeTree(directory);
});

it("an entry that is not what was read is left out", async () => {
  using lab = await labWithFiles();
  const { context } = lab;
  const below = rowsFromListing(lab.listing());
  const layers = [makeLayer(context, [{ path: "worktree/h", content: "stored" }])];
  const packed = captured([{ path: "worktree/h", content: "read" }]);
  const { flaws } = passGate(context, { layers, captured: packed, below, rows: below });
  expect(flaws).toMatchObject([{ path: "worktree/h", reason: expect.stringContaining("differs") }]);
});

it("rows that do not list what the layers do are not kept", async () => {
  using lab = await labWithFiles();
  const drafts = [{ path: "worktree/new", content: "x" }];
  const below = rowsFromListing(lab.listing());
  const layers = [makeLayer(lab.context, drafts)];
  const candidate = { layers, captured: captured(drafts), below };
  expect(passGate(lab.context, { ...candidate, rows: below }).areRowsExact).toBe(false);
  const rows = new ChangedRows(below);
  rows.set("worktree/new", createUnknownRow(draftEntry(drafts[0]!)));
  expect(passGate(lab.context, { ...candidate, rows }).areRowsExact).toBe(true);
});

it("a layer that the disk damages while it is written is not published", async () => {
  using lab = await labWithFiles();
  const before = lab.context.vault.list();
  fs.writeFileSync(join(lab.worktree, "more"), "more");
  const badDisk = {
    ...systemDisk,
    rename(from: string | Buffer, to: string | Buffer) {
      if (/\/scratch\/layer$/.test(String(from))) {
        const bytes = fs.readFileSync(from);
        bytes[bytes.length - 60]! ^= 1;
        fs.writeFileSync(from, bytes);
      }
      systemDisk.rename(from, to);
    },
  };
  await expect(lab.with({ machine: { disk: badDisk } }).checkpoint()).rejects.toThrow(
    /table of contents .*no checkpoint was made/,
  );
  expect(lab.context.vault.list()).toEqual(before);
  expect((await lab.checkpoint()).flaws).toEqual([]);
  await lab.verify();
});

it("a checkpoint that an early version published without this check is not used as a base", async () => {
  using lab = await labWithFiles();
  const { context } = lab;
  const head = readCheckpoint(context.vault, context.vault.list().at(-1)!);
  const link = makeLayer(context, [{ path: "worktree/d", type: "symlink", target: "elsewhere" }]);
  publishCheckpoint(context, [...head.layers, link]);
  const { ref, flaws } = await lab.checkpoint();
  expect(flaws).toMatchObject([
    { path: ".", kind: "degraded", reason: expect.stringContaining("stored again") },
  ]);
  removeTree(await lab.restored(ref.id));
  expect((await lab.checkpoint()).flaws).toEqual([]);
});
