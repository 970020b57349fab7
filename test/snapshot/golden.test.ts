// Vaults written by earlier format versions, each with a listing made at the time by independent code. They must always
// verify, restore exactly, and survive export and import.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import type { MissionContext } from "../../src/snapshot/mission-context.ts";
import { exportToFile } from "../../src/snapshot/operations/export.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { isRoot } from "../plain-user.ts";
import { fixtureContext } from "./hand-made.ts";
import { canList, type ListedPath, listTree } from "./real-cell.ts";

const GOLDEN = join(import.meta.dirname, "..", "golden");
const vaults = readdirSync(GOLDEN)
  .filter((name) => /^v\d+$/.test(name))
  .flatMap((version) => readdirSync(join(GOLDEN, version)).map((name) => `${version}/${name}`));

/** Only root can change owners, and not every file system keeps holes in the same places. */
function comparable(rows: readonly ListedPath[]): ListedPath[] {
  return rows.map(({ holes: _, uid, gid, ...row }) => (isRoot ? { ...row, uid, gid } : row));
}

describe.skipIf(!canList()).each(vaults)("the golden vault %s", (name) => {
  let home: string;
  let context: MissionContext;
  const expected = (id: string): ListedPath[] =>
    readFileSync(join(GOLDEN, name, `${id}.jsonl`), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));

  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), "lazarus-golden-"));
    context = fixtureContext(systemMachine, join(home, "lazarus"), "golden");
    mkdirSync(context.config.vault_root, { recursive: true });
    cpSync(join(GOLDEN, name, "vault"), context.vault.root, { recursive: true });
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it("passes verify --deep", async () => {
    const { findings, checkpoints } = await verifyVault(context.vault, { deep: true });
    expect(findings).toEqual([]);
    expect(checkpoints).toBe(5);
  });

  it("still lists its checkpoints", () => {
    const refs = context.vault.list();
    expect(refs.map(({ reason, message, pinned }) => [reason, message, pinned])).toEqual([
      ["manual", "the whole cell", false],
      ["manual", "change 1", true],
      ["manual", "change 2", false],
      ["manual", "change 3", false],
      ["scheduled", "nothing changed", false],
    ]);
    expect(refs[4]!.manifest).toBe(refs[3]!.manifest);
    expect(refs[4]!.parent).toBe(refs[3]!.id);
    expect(readCheckpoint(context.vault, refs[3]!).metadata).toMatchObject({
      format: 1,
      host: "golden",
      flaws: [],
    });
  });

  it("restores every checkpoint to the recorded tree", async () => {
    for (const [i, ref] of context.vault.list().slice(0, 4).entries()) {
      const directory = join(home, `restored-${i}`);
      await restoreTo(context, { checkpoint: ref.id, directory });
      expect(comparable(listTree(directory))).toEqual(comparable(expected(ref.id)));
    }
  });

  it("survives export and import", async () => {
    const ref = context.vault.list()[3]!;
    const file = join(home, "golden.tar.gz");
    await exportToFile(context, ref, file);
    const again = fixtureContext(systemMachine, join(home, "lazarus"), "again");
    await importCell(again, { source: file, owners: isRoot, trusted: true });
    const inWorktree = (rows: readonly ListedPath[]) =>
      comparable(rows).filter(({ path }) => path.startsWith("worktree/"));
    expect(inWorktree(listTree(again.cellRoot))).toEqual(inWorktree(expected(ref.id)));
  });
});

it("has a golden vault for every format version", () => {
  expect(vaults).toEqual(expect.arrayContaining(["v1/gzip", "v1/zstd"]));
});
