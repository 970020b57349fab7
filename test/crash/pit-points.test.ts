// The pit is killed at each of its crash points while it handles a death. The next pit continues from there: one revival,
// one agent, a crash checkpoint.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { BUILT, LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, type PitWorld } from "../pit/pit-world.ts";

const POINTS = listCrashPoints(join(import.meta.dirname, "..", "..", "src", "pit")).map(({ name }) => name);
const ARM = pathToFileURL(join(BUILT, "dist", "arm-crash-point.js")).href;

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

test("finds crash points", () => {
  expect(POINTS.length).toBeGreaterThanOrEqual(8);
});

test.each(POINTS)("killed at %s", async (point) => {
  world.run(["run", "m1", "-d", "--revive", "yes", "--", "sleep", "600"]);
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await world.until("the end", () => world.state("m1") === "ending");
  const armed = spawn(process.execPath, ["--import", ARM, LAUNCHER, "pit"], {
    cwd: world.cwd,
    env: { ...world.env, LAZARUS_CRASH_AT: point },
    stdio: "ignore",
  });
  await world.until(`its death at ${point}`, () => armed.signalCode === "SIGKILL");
  await world.openPit();
  await world.until(
    "a running life",
    () => world.state("m1") === "running" && world.life("m1").epoch === world.record("m1").life.epoch,
  );
  expect(world.life("m1").epoch).toBeGreaterThan(1);
  expect(world.checkpoints("m1").map(({ reason }) => reason)).toContain("crash");
  const agents = () => world.processes().filter((pid) => commandOf(pid).startsWith("sleep\u0000600"));
  await world.until("the agent", () => agents().length > 0);
  expect(agents()).toEqual([world.life("m1").agent.pid]);
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
