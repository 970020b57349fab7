// Concurrent commands on one agent: the first one acts, no second agent starts, and a stop holds.
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

/** Runs the command lines concurrently and returns their exit codes. */
const runConcurrently = (...lines: readonly string[]): number[] => {
  const started = lines.map((line, n) => `(lazarus ${line} >/dev/null 2>&1; echo $? >code.${n}) &`);
  world.shell(`${started.join("\n")}\nwait`);
  return lines.map((_, n) => Number(readFileSync(`${world.cwd}/code.${n}`, "utf8")));
};
const sleepers = () =>
  world.processes().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith("sleep\u0000777");
    } catch {
      return false;
    }
  });

it("one of five concurrent runs starts the agent, the others are refused", async () => {
  const codes = runConcurrently(...Array.from({ length: 5 }, () => "run m1 -d -- sleep 777"));
  expect(codes.sort()).toEqual([0, 10, 10, 10, 10]);
  await world.until("its command", () => sleepers().length > 0);
  expect(sleepers()).toEqual([world.life("m1").agent.pid]);
});

it("one of five concurrent revivals starts the agent, the others find it running", async () => {
  world.run(["run", "m1", "-d", "--", "sleep", "777"]);
  world.run(["stop", "m1", "--no-checkpoint", "--grace", "0"]);
  expect(runConcurrently(...Array.from({ length: 5 }, () => "revive m1"))).toEqual([0, 0, 0, 0, 0]);
  expect(world.life("m1").epoch).toBe(2);
  await world.until("its command", () => sleepers().length > 0);
  expect(sleepers()).toEqual([world.life("m1").agent.pid]);
});

it("concurrent stops and revivals end in the recorded state", async () => {
  await world.openPit();
  world.run(["run", "m1", "-d", "--revive", "yes", "--", "sleep", "777"]);
  const codes = runConcurrently(
    "stop m1 --no-checkpoint",
    "revive m1",
    "stop m1 --no-checkpoint",
    "revive m1",
  );
  expect(codes).toEqual([0, 0, 0, 0]);
  const desired = world.record("m1").wish;
  await world.until("a final state", () => ["running", "stopped"].includes(world.state("m1")));
  expect(world.state("m1")).toBe(desired === "stopped" ? "stopped" : "running");
  await world.until(
    "the right number of processes",
    () => sleepers().length === (desired === "stopped" ? 0 : 1),
  );
});
