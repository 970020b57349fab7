// A pit that is killed at any crash point of a live point that it takes from a set: the next pit saves everything, and every point
// that is listed can be restored.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { listCrashPoints } from "../../src/testing/index.ts";
import { ARM, bundleProgram } from "../bundle.ts";
import { SOURCES } from "../crash/checkpoint-kill.ts";
import { createLiveLab } from "./live-lab.ts";

/** Not part of a live point of a cell without a conversation, whose layers are not merged. */
const OTHERS = /snapshot\.(compact\.|stat-store\.removed|capture\.conversation-copied)/;
const points = listCrashPoints(SOURCES)
  .map(({ name }) => name)
  .filter((name) => /^snapshot\.(capture|layer|publish|stat-store)\./.test(name) && !OTHERS.test(name));

const VICTIM = await bundleProgram(join(import.meta.dirname, "live-victim.ts"));

describe("a pit that is killed during a live point", () => {
  // The first pass is the walk at the start of a pit.
  it.each(points)("at %s", async (point) => {
    await using lab = await createLiveLab((worktree) =>
      fs.writeFileSync(join(worktree, "log"), "x".repeat(9999)),
    );
    const { signal, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", ARM, VICTIM, lab.directory, "6"],
      { env: { ...process.env, LAZARUS_CRASH_AT: `${point}#4` }, encoding: "utf8" },
    );
    expect([signal, stderr]).toEqual(["SIGKILL", expect.anything()]);
    expect(stdout.split("\n")).toContain("set");
    await using next = await createLiveLab(() => {}, lab.directory);
    expect(await next.differences()).toEqual([]);
    fs.appendFileSync(join(next.worktree, "log"), "after the kill\n");
    await next.point();
    expect(next.lastSet.unknown).toBe(null);
    expect(await next.differences()).toEqual([]);
    const { findings } = await verifyVault(next.context.openMission("m1" as never).vault, { deep: true });
    expect(findings).toEqual([]);
  });

  it("has crash points", () => {
    expect(points.length).toBeGreaterThanOrEqual(7);
  });
});
