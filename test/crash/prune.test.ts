// A prune killed with SIGKILL at every crash point: the vault verifies, the checkpoints are the old or the new ones, and the
// next prune completes the work.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import {
  BASE,
  fixtureContext,
  initializedContext,
  makeLayer,
  publishCheckpoint,
  seededMachine,
} from "../snapshot/hand-made.ts";
import { runVictim, withCopy } from "./kill.ts";

const POLICY = {
  keep_last: 1,
  keep_hourly: 0,
  keep_daily: 0,
  keep_weekly: 0,
  keep_within_seconds: 0,
  max_bytes: 0,
};
const names = listCrashPoints(fileURLToPath(new URL("../../src", import.meta.url))).map(({ name }) => name);
/** The crash points of prune itself, and those of writing the index. */
const points = [
  ...names.filter((name) => name.startsWith("snapshot.prune.") || name.startsWith("snapshot.publish.")),
  "durable.temporary.written",
  "durable.replace.renamed",
].map((name) => `${name}#1`);
points.push("snapshot.prune.blob-removed#4");

let home: string;
let before: string[];
let after: string[];
let blobsAfter: string[];

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-prune-kill-"));
  const machine = seededMachine();
  const context = await initializedContext(machine, home);
  const base = makeLayer(context, BASE);
  const delta = makeLayer(context, [{ path: "worktree/a.txt", content: "2" }]);
  const rebase = makeLayer(context, [...BASE, { path: "worktree/z", content: "z" }]);
  const pinned = makeLayer(context, [
    { path: "worktree", type: "directory" },
    { path: "worktree/pinned", content: "p" },
  ]);
  publishCheckpoint(context, [pinned], { pinned: true });
  for (const layers of [[base], [base, delta], [rebase]]) {
    await machine.clock.advance(60_000);
    publishCheckpoint(context, layers);
  }
  before = context.vault.list().map(({ id }) => id);
  await withCopy(home, async (copy) => {
    const context = fixtureContext(systemMachine, copy);
    await prune(context, { policy: POLICY });
    after = context.vault.list().map(({ id }) => id);
    blobsAfter = context.vault
      .blobs()
      .map(({ digest }) => digest)
      .sort();
  });
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

describe.concurrent("a prune killed with SIGKILL", () => {
  for (const point of points) {
    it(`at ${point} leaves an intact vault, and the next prune completes it`, async () => {
      await withCopy(home, async (copy) => {
        const ending = await runVictim(["prune", copy, JSON.stringify(POLICY)], point);
        expect(ending.signal, `${point} is never reached: ${ending.stderr}`).toBe("SIGKILL");
        const context = fixtureContext(systemMachine, copy);
        const now = context.vault.list().map(({ id }) => id);
        expect([before, after]).toContainEqual(now);
        expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
        await prune(context, { policy: POLICY });
        expect(context.vault.list().map(({ id }) => id)).toEqual(after);
        expect(
          context.vault
            .blobs()
            .map(({ digest }) => digest)
            .sort(),
        ).toEqual(blobsAfter);
        expect((await verifyVault(context.vault, { deep: true })).findings).toEqual([]);
        const temporaries = readdirSync(context.vault.root, { recursive: true, encoding: "utf8" }).filter(
          (name) => name.endsWith(".tmp"),
        );
        expect(temporaries).toEqual([]);
      });
    });
  }

  it("removes two checkpoints and keeps two when it is not killed", async () => {
    await withCopy(home, async (copy) => {
      const ending = await runVictim(["prune", copy, JSON.stringify(POLICY)], "never");
      expect(ending, ending.stderr).toMatchObject({ code: 0, stdout: "done\n" });
      expect([before.length, after.length]).toEqual([4, 2]);
    });
  });
});
