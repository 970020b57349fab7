// What a stop saves, and how it interacts with other stops, checkpoints and revivals.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUILT, LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const inWorktree = (name: string) => join(world.missions, "m1", "worktree", name);

async function start(script: string): Promise<void> {
  await world.call(["run", "m1", "-d", "--", "sh", "-c", script]);
  await world.until("the agent to be ready", () => existsSync(inWorktree("ready")));
}

/** Ignores SIGTERM. */
const IGNORES_SIGTERM = "trap '' TERM; touch ready; while :; do sleep 0.05; done";

describe("what the agent writes in its signal handler", () => {
  const script = "trap 'echo bye > last; exit 0' TERM; touch ready; while :; do sleep 0.05; done";

  it.each(["stop", "rest"])("is in the checkpoint that %s and why name", async (verb) => {
    await start(script);
    const { stdout } = await world.call([verb, "m1", "--json"]);
    const id = JSON.parse(stdout).checkpoint_id;
    await world.call(["restore", "m1", id, "--to", "copy"]);
    expect(readFileSync(join(world.cwd, "copy", "worktree", "last"), "utf8")).toBe("bye\n");
    expect((await world.call(["why", "m1"])).stdout).toContain(`checkpoint: ${id}`);
  });

  it("is saved by the next command when the stop itself was killed", async () => {
    await start(script);
    const arm = pathToFileURL(join(BUILT, "dist", "arm-crash-point.js")).href;
    spawnSync(process.execPath, ["--import", arm, LAUNCHER, "stop", "m1"], {
      cwd: world.cwd,
      env: { ...world.env, LAZARUS_CRASH_AT: "pit.stop.ended" },
    });
    expect(world.record("m1")).toMatchObject({ wish: "stopped", scene: null });
    await world.call(["revive", "m1"]);
    const { checkpoint } = world.record("m1").scene;
    await world.call(["restore", "m1", checkpoint, "--to", "copy"]);
    expect(readFileSync(join(world.cwd, "copy", "worktree", "last"), "utf8")).toBe("bye\n");
  });
});

it("a stop without grace overrides one that waits, and a checkpoint does not wait for either", async () => {
  await start(IGNORES_SIGTERM);
  const patient = world.call(["stop", "m1", "--grace", "100000", "--no-checkpoint"]);
  await world.until("the first stop", () => world.record("m1").wish === "stopped");
  expect((await world.call(["checkpoint", "m1"])).exit).toBe(0);
  expect(world.state("m1")).toBe("ending");
  const stop = await world.call(["stop", "m1", "--grace", "0", "--no-checkpoint"]);
  expect([stop.exit, (await patient).exit]).toEqual([0, 0]);
  expect(world.state("m1")).toBe("stopped");
  expect(world.record("m1").scene.checkpoint).toBe(world.checkpoints("m1").at(-1)?.checkpoint_id);
});

it("revive waits for a stop that is under way, and never starts before it is done", async () => {
  await start(IGNORES_SIGTERM);
  const stop = world.call(["stop", "m1", "--grace", "100000", "--no-checkpoint"]);
  await world.until("the stop", () => world.record("m1").wish === "stopped");
  let revived = false;
  const revive = world.call(["revive", "m1"]).then((ending) => {
    revived = true;
    return ending;
  });
  await world.call(["checkpoint", "m1"]);
  expect(revived).toBe(false);
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await stop;
  expect((await revive).stderr).toContain("m1 is running again as life 2");
  expect(world.record("m1")).toMatchObject({ wish: "running", scene: { epoch: 1, error: null } });
});
