// The audit of the watch: a walk finds what the watch did not report, saves it, and counts it. The watcher is the real one, behind a
// filter that can lose what a test names.
import { linkSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { createLivePoints, type LivePoints } from "../../src/pit/live/live-points.ts";
import { readLiveStatus } from "../../src/pit/live/live-status.ts";
import { openTreeWatcher, type TakenPaths, type TreeWatcher } from "../../src/pit/watch/tree-watcher.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { startTestServer, type TestServer } from "../http/test-server.ts";

const M1 = parseMissionId("m1");
let server: TestServer;
let watcher: TreeWatcher;
let live: LivePoints;
/** Paths that the watcher does not report. */
let lost: Set<string>;
/** How often the next point walks the cell. */
let auditMs: number;

beforeEach(async () => {
  server = await startTestServer();
  lost = new Set();
  auditMs = 3_600_000;
  const real = openTreeWatcher({ cookies: join(server.directory, "cookies") });
  const without = (taken: TakenPaths): TakenPaths => ({
    ...taken,
    paths: taken.paths.filter((path) => !lost.has(path)),
  });
  watcher = {
    add: (key, tree) => real.add(key, tree),
    remove: (key) => real.remove(key),
    read: (key) => real.read(key),
    take: async (key) => without(await real.take(key)),
    putBack: (key, taken) => real.putBack(key, taken),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  };
  live = createLivePoints(server.pitContext, watcher);
  mkdirSync(at("sub"));
  writeFileSync(at("old"), "1");
  await takePoint();
});
afterEach(async () => {
  await live[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const at = (path: string) => join(server.config.missions_root, "m1", "worktree", path);

async function takePoint(): Promise<void> {
  const limits = { withinMs: 1000, quietMs: 0, share: 1, auditMs };
  live.protect([{ mission: M1, agent: null, limits }], 0);
  live.due(0);
  await live.take(M1);
  live.due(0);
}

function savedPaths(): string[] {
  const { vault } = server.pitContext.openMission(M1);
  using contents = openContents(vault, readCheckpoint(vault, vault.list().at(-1)!).layers);
  return [...contents.listing.keys()];
}
const status = () => readLiveStatus(server.config, "m1", process.pid);
const alerts = () => server.port.events({ last: 100 }).filter(({ kind }) => kind === "alert");

it("finds nothing when the watch reports everything", async () => {
  auditMs = 0;
  for (let round = 0; round < 3; round += 1) {
    writeFileSync(at(`sub/new-${round}`), "1");
    writeFileSync(at("old"), `${round}`);
    await takePoint();
  }
  expect(live.unseen).toEqual({ missed: 0, invisible: 0 });
  expect(live.isWatched(M1)).toBe(true);
});

it("counts, saves and reports what the watch missed, and walks that cell from then on", async () => {
  writeFileSync(at("sub/missed"), "1");
  lost.add("worktree/sub/missed").add("worktree/sub");
  auditMs = 0;
  await takePoint();
  expect(live.unseen).toEqual({ missed: 2, invisible: 0 });
  expect(savedPaths()).toContain("worktree/sub/missed");
  expect(status()?.unwatched).toBe(
    "its watch missed changes, found by the audit: worktree/sub, worktree/sub/missed",
  );
  expect(alerts()).toMatchObject([{ mission: "m1", data: { action: "missed" } }]);
  expect(live.isWatched(M1)).toBe(false);
  // Walks do not count as audits while the watch is not trusted.
  writeFileSync(at("sub/again"), "1");
  lost.add("worktree/sub/again");
  await takePoint();
  expect(savedPaths()).toContain("worktree/sub/again");
  expect(live.unseen).toEqual({ missed: 2, invisible: 0 });
});

it("counts a write through a name outside the cell separately, and keeps watching", async () => {
  const outside = join(server.directory, "outside");
  linkSync(at("old"), outside);
  await takePoint();
  writeFileSync(outside, "through another name");
  auditMs = 0;
  await takePoint();
  expect(live.unseen).toEqual({ missed: 0, invisible: 1 });
  expect(server.logged.join("\n")).toContain(
    "m1: changes that no watch can see, found by the audit: worktree/old",
  );
  expect(live.isWatched(M1)).toBe(true);
  const { vault } = server.pitContext.openMission(M1);
  using contents = openContents(vault, readCheckpoint(vault, vault.list().at(-1)!).layers);
  expect(contents.listing.get("worktree/old")?.size).toBe("through another name".length);
});

it("puts the set back when a capture fails, and saves it with the next point", async () => {
  const { vault } = server.pitContext.openMission(M1);
  const before = vault.list().length;
  writeFileSync(vault.journalFile, "damaged");
  writeFileSync(at("sub/later"), "1");
  await takePoint();
  expect(status()?.problem).not.toBe(null);
  expect(vault.list().length).toBe(before);
  rmSync(vault.journalFile, { force: true });
  await takePoint();
  expect(status()?.problem).toBe(null);
  expect(savedPaths()).toContain("worktree/sub/later");
});

it("no longer reports a failed point after a checkpoint that the user took", async () => {
  const { vault } = server.pitContext.openMission(M1);
  writeFileSync(vault.journalFile, "damaged");
  writeFileSync(at("sub/later"), "1");
  await takePoint();
  expect(status()?.problem).not.toBe(null);
  rmSync(vault.journalFile, { force: true });
  await live.checkpoint(M1, { reason: "manual" });
  expect(savedPaths()).toContain("worktree/sub/later");
  live.due(server.pitContext.machine.clock.monotonicMs());
  expect(status()).toMatchObject({ problem: null, unsaved_changes: 0 });
});
