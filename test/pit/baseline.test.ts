// The baseline (INV-10): a checkpoint from before an agent's first life, so that even an agent that deletes its own cell
// can be undone; and useful hints when there is nothing to restore.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const reasons = () => world.checkpoints("m1").map(({ reason }) => reason);
const note = () => join(world.missions, "m1", "worktree", "note.txt");
const DELETES_ITS_CELL = ["--", "sh", "-c", 'rm -rf "$LAZARUS_CELL"; exit 3'];

describe("the baseline", () => {
  it("brings back what an agent deleted together with its cell", async () => {
    await world.call(["init", "m1"]);
    writeFileSync(note(), "written by a human\n");
    world.run(["run", "m1", ...DELETES_ITS_CELL]);
    expect(existsSync(note())).toBe(false);
    expect(reasons()).toEqual(["baseline"]);
    expect((await world.call(["restore", "m1"])).exit).toBe(0);
    expect(readFileSync(note(), "utf8")).toBe("written by a human\n");
  });

  it("is taken again only when the cell has changed since the last checkpoint", async () => {
    world.run(["run", "m1", "--", "true"]);
    world.run(["run", "m1", "--", "true"]);
    const before = reasons();
    writeFileSync(note(), "an edit between two lives\n");
    world.run(["run", "m1", "--", "sh", "-c", "rm note.txt"]);
    expect(before.filter((reason) => reason === "baseline")).toHaveLength(1);
    expect(reasons().slice(before.length)).toEqual(["baseline", "departure"]);
  });

  it("is required: when it fails, no agent is started", async () => {
    writeFileSync(join(world.home, "vault"), "not a directory");
    const refused = await world.call(["run", "m1", "-d", "--", "true"]);
    expect(refused.exit).not.toBe(0);
    expect(refused.stderr).toContain("the agent was not started");
    expect(refused.stderr).toContain("lazarus run m1 --no-baseline -- COMMAND");
    expect(existsSync(join(world.home, "run", "agents", "m1", "life.json"))).toBe(false);
    expect((await world.call(["run", "m1", "-d", "--no-baseline", "--", "sleep", "600"])).exit).toBe(0);
  });

  it("survives every retention policy", async () => {
    const retention = { keep_last: 1, keep_within_seconds: 0, keep_hourly: 0, keep_daily: 0, keep_weekly: 0 };
    writeFileSync(join(world.home, "config.json"), JSON.stringify({ retention }));
    world.run(["run", "m1", "--", "sh", "-c", "echo 1 > one"]);
    for (const text of ["two", "three"]) {
      writeFileSync(note(), text);
      await world.call(["checkpoint", "m1"]);
    }
    await world.call(["prune", "m1"]);
    expect(reasons()).toEqual(["baseline", "manual"]);
  });
});

describe("a mission whose cell and checkpoints are gone", () => {
  it("every command that could restore it says how to start over", async () => {
    world.run(["run", "m1", "--no-baseline", ...DELETES_ITS_CELL]);
    rmSync(join(world.home, "vault"), { recursive: true, force: true });
    for (const words of [
      ["why", "m1"],
      ["revive", "m1"],
      ["restore", "m1"],
    ]) {
      const { stdout, stderr } = await world.call(words);
      expect(stdout + stderr).toContain("lazarus run m1 -- COMMAND");
      expect(stdout + stderr).not.toMatch(/lazarus (?:restore|revive) m1/);
    }
  });
});
