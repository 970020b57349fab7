// The pit is killed at each of its crash points while it handles a death. The next pit continues from there: one revival,
// one agent, a crash checkpoint. A stop is killed at each of its own: the next stop finishes it.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { HEADLESS } from "../agents/fake/headless.ts";
import { countEffects, installFakes, readRequests } from "../agents/fake/install.ts";
import { BUILT, LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, killIfRunning, type PitWorld } from "../pit/pit-world.ts";

const ALL = listCrashPoints(join(import.meta.dirname, "..", "..", "src", "pit")).map(({ name }) => name);
/** Passed by the commands, never by a pit. */
const STOP_POINTS = ALL.filter((name) => name.startsWith("pit.stop."));
const SET_POINTS = ALL.filter((name) => name.startsWith("pit.set."));
/** Passed only for an agent with an adapter. */
const SESSION_POINTS = ALL.filter((name) => name.endsWith(".session"));
const SPECIAL = new Set([...STOP_POINTS, ...SET_POINTS, ...SESSION_POINTS]);
const POINTS = ALL.filter((name) => !SPECIAL.has(name));
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

test.each(SESSION_POINTS)("killed at %s: the conversation continues", async (point) => {
  const bin = installFakes(join(world.directory, "agents"), "claude");
  const traces = join(world.directory, "traces");
  mkdirSync(traces);
  const env = {
    PATH: `${bin}:${world.env.PATH}`,
    FAKE_DIRECTORY: traces,
    FAKE_STEPS: "4",
    FAKE_PAUSE: "3:effect",
  };
  const line = [
    "run",
    "m1",
    "-d",
    "--revive",
    "yes",
    "--",
    "claude",
    ...HEADLESS.claude!.args("Write the book"),
  ];
  world.run(line, { env: { ...env, ...HEADLESS.claude!.key } });
  const paused = join(traces, "paused");
  await world.until("step 3", () => existsSync(paused) && readFileSync(paused, "utf8") !== "");
  killIfRunning(Number(readFileSync(paused, "utf8")));
  await world.until("the end", () => world.state("m1") === "ending");
  const armed = spawn(process.execPath, ["--import", ARM, LAUNCHER, "pit"], {
    cwd: world.cwd,
    env: { ...world.env, LAZARUS_CRASH_AT: point },
    stdio: "ignore",
  });
  await world.until(`its death at ${point}`, () => armed.signalCode === "SIGKILL");
  await world.openPit();
  await world.until("the book", () => world.state("m1") === "finished");
  expect(countEffects(join(world.missions, "m1", "worktree", "outbox.log"))).toEqual({
    1: 1,
    2: 1,
    3: 1,
    4: 1,
  });
  expect(new Set(readRequests(traces).map(({ session }) => session)).size).toBe(1);
});

test.each(STOP_POINTS)("a stop killed at %s", async (point) => {
  await world.call(["run", "m1", "-d", "--revive", "yes", "--", "sleep", "600"]);
  const { signal } = spawnSync(process.execPath, ["--import", ARM, LAUNCHER, "stop", "m1"], {
    cwd: world.cwd,
    env: { ...world.env, LAZARUS_CRASH_AT: point },
  });
  expect(signal).toBe("SIGKILL");
  expect(world.record("m1").wish).toBe("stopped");
  expect((await world.call(["stop", "m1"])).exit).toBe(0);
  expect([world.state("m1"), world.life("m1").epoch]).toEqual(["stopped", 1]);
  expect(world.record("m1").scene).toMatchObject({ epoch: 1, error: null });
  expect(world.processes()).toEqual([]);
});

test.each(SET_POINTS)("lazarus set killed at %s: the same command works afterwards", async (point) => {
  world.run(["run", "m1", "--", "sh", "-c", "exit 1"]);
  const line = ["set", "m1", "revive=no", "--env-file", world.write("keys.env", "KEY=new\n")];
  const before = world.record("m1");
  const armed = world.run(line, { env: { LAZARUS_CRASH_AT: point }, nodeOptions: ["--import", ARM] });
  expect(armed.exit).toBe(null);
  expect(world.record("m1")).toEqual(before);
  expect((await world.call(line)).exit).toBe(0);
  expect(world.record("m1")).toMatchObject({
    settings: { revive: "no" },
    environment: before.environment + 1,
  });
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch {
    return "";
  }
}
