import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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
import { DEFAULT_RETENTION } from "../settings.ts";
import { openContents } from "../vault/contents.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { setPin } from "./pin.ts";
import { prune, pruneIfDue } from "./prune.ts";
import { verifyVault } from "./verify.ts";

const LAST_ONE = {
  keep_last: 1,
  keep_hourly: 0,
  keep_daily: 0,
  keep_weekly: 0,
  keep_within_seconds: 0,
  max_bytes: 0,
};

let home: string;
let context: MissionContext;
let refs: CheckpointRef[];

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-prune-"));
  const machine = seededMachine();
  context = await initializedContext(machine, home);
  const base = makeLayer(context, BASE);
  const one = makeLayer(context, [{ path: "worktree/a.txt", content: "alpha 2\n" }]);
  const two = makeLayer(context, [{ path: "worktree/b.txt", content: "beta 2\n" }]);
  const rebase = makeLayer(context, [...BASE, { path: "worktree/z", content: "z" }]);
  refs = [];
  for (const layers of [[base], [base, one], [base, one, two], [rebase]]) {
    refs.push(publishCheckpoint(context, layers));
    await machine.clock.advance(60_000);
  }
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const ids = (list: readonly CheckpointRef[]) => list.map(({ id }) => id);

describe("prune", () => {
  it("removes checkpoints that the policy does not keep, and blobs that only they needed", async () => {
    const result = await prune(context, { policy: { ...LAST_ONE, keep_last: 2 } });
    expect(ids(result.removed)).toEqual(ids(refs.slice(0, 2)));
    expect(ids(context.vault.list())).toEqual(ids(refs.slice(2)));
    // Two manifests and two configs; all layers are still needed.
    expect(result.removedBlobs).toBe(4);
    const { findings } = await verifyVault(context.vault, { deep: true });
    expect(findings).toEqual([]);
    using contents = openContents(context.vault, readCheckpoint(context.vault, refs[2]!).layers);
    expect(contents.listing.get("worktree/a.txt")?.size).toBe(8);
  });

  it("frees the layers of a chain with its last checkpoint", async () => {
    const result = await prune(context, { policy: LAST_ONE });
    expect(result.removedBlobs).toBe(9);
    expect(context.vault.blobs()).toHaveLength(3);
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
    expect((await prune(context, { policy: LAST_ONE })).removedBlobs).toBe(0);
  });

  it("dry-run reports the same and changes nothing", async () => {
    const index = readFileSync(join(context.vault.root, "index.json"));
    const dry = await prune(context, { policy: LAST_ONE, dryRun: true });
    expect(readFileSync(join(context.vault.root, "index.json"))).toEqual(index);
    const real = await prune(context, { policy: LAST_ONE });
    expect([dry.freedBytes, dry.removedBlobs, ids(dry.removed)]).toEqual([
      real.freedBytes,
      real.removedBlobs,
      ids(real.removed),
    ]);
  });

  it("keeps a manifest that two entries share while one of them is kept", async () => {
    const last = refs[3]!;
    context.vault.publish([
      ...refs,
      { ...last, id: "20261116-000000-zzzzzz", createdAtMs: last.createdAtMs + 1000 },
    ]);
    await prune(context, { policy: LAST_ONE });
    expect(ids(context.vault.list())).toEqual(["20261116-000000-zzzzzz"]);
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
  });

  it("keeps a pinned checkpoint with all its layers until it is unpinned", async () => {
    expect(await setPin(context, refs[1]!.id, true)).toMatchObject({ changed: true, ref: { pinned: true } });
    expect(await setPin(context, refs[1]!.id, true)).toMatchObject({ changed: false });
    await prune(context, { policy: LAST_ONE });
    expect(ids(context.vault.list())).toEqual([refs[1]!.id, refs[3]!.id]);
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
    await setPin(context, refs[1]!.id.slice(0, 15), false);
    await prune(context, { policy: LAST_ONE });
    expect(ids(context.vault.list())).toEqual([refs[3]!.id]);
  });

  it("removes the garbage of interrupted checkpoints, even when no checkpoint is removed", async () => {
    const orphan = context.vault.put(Buffer.from("an orphan"));
    const temporary = join(context.vault.root, "blobs", "sha256", ".abc.999999999.0.tmp");
    writeFileSync(temporary, "half");
    const result = await prune(context, { policy: DEFAULT_RETENTION });
    expect(result).toMatchObject({ removed: [], removedBlobs: 1, freedBytes: 9 });
    expect(context.vault.has(orphan.digest)).toBe(false);
    expect(existsSync(temporary)).toBe(false);
  });

  it("removes no blob when a kept checkpoint cannot be read", async () => {
    writeFileSync(blobFile(context, refs[3]!.manifest), "garbage");
    const before = context.vault.blobs().length;
    const result = await prune(context, { policy: LAST_ONE });
    expect(result.sweepRefused).toContain(refs[3]!.id);
    expect(context.vault.blobs()).toHaveLength(before);
  });

  it("removes checkpoints that cannot be read when asked to, and what they needed", async () => {
    writeFileSync(blobFile(context, refs[1]!.manifest), "garbage");
    const kept = refs.filter((_, i) => i !== 1);
    const result = await prune(context, { policy: DEFAULT_RETENTION, unreadable: true });
    expect(result).toMatchObject({ removed: [{ id: refs[1]!.id }], sweepRefused: null });
    expect(result.reasons.get(refs[1]!.id)).toEqual(["its manifest is damaged"]);
    expect(result.removedBlobs).toBeGreaterThan(0);
    expect(ids(context.vault.list())).toEqual(ids(kept));
    expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
  });

  it("does not remove the only checkpoints, even if they cannot be read", async () => {
    for (const { manifest } of refs) writeFileSync(blobFile(context, manifest), "garbage");
    const result = await prune(context, { policy: DEFAULT_RETENTION, unreadable: true });
    expect(result.removed).toEqual([]);
    expect(result.sweepRefused).not.toBeNull();
    expect(context.vault.list()).toHaveLength(refs.length);
  });

  it("respects max_bytes as far as protected checkpoints allow", async () => {
    const total = context.vault.blobs().reduce((sum, { size }) => sum + size, 0);
    await prune(context, { policy: { ...DEFAULT_RETENTION, max_bytes: total - 100 } });
    expect(ids(context.vault.list())).toEqual(ids(refs.slice(1)));
    await prune(context, { policy: { ...DEFAULT_RETENTION, max_bytes: 1 } });
    expect(ids(context.vault.list())).toEqual([refs[3]!.id]);
  });
});

describe("pruning after a checkpoint", () => {
  /** Prunes if due, with these limits, and counts the blobs that are read for it. */
  async function pruneCounting(retention: object) {
    let reads = 0;
    const { vault, settings } = context;
    const counting: MissionContext = {
      ...context,
      settings: { ...settings, retention: { ...DEFAULT_RETENTION, ...retention } },
      vault: {
        ...vault,
        read: (digest) => {
          reads += 1;
          return vault.read(digest);
        },
      },
    };
    using lock = await vault.lock("test");
    const result = await pruneIfDue(counting, lock);
    return { reads, removed: result && ids(result.removed) };
  }

  it("reads no manifest when nothing is to be removed", async () => {
    const live = refs.map((ref, i) => ({ ...ref, id: `live-${i}`, reason: "live" as const }));
    context.vault.publish([...refs, ...live]);
    expect(await pruneCounting({})).toEqual({ reads: 0, removed: undefined });
    const total = context.vault.blobs().reduce((sum, { size }) => sum + size, 0);
    expect(await pruneCounting({ max_bytes: total })).toEqual({ reads: 0, removed: undefined });
  });

  it("removes what no rule keeps, and what is above max_bytes", async () => {
    expect(await pruneCounting({ ...LAST_ONE, keep_last: 3 })).toMatchObject({ removed: [refs[0]!.id] });
    const total = context.vault.blobs().reduce((sum, { size }) => sum + size, 0);
    expect(await pruneCounting({ max_bytes: total - 1 })).toMatchObject({ removed: [refs[1]!.id] });
  });
});
