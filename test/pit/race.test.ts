// Many hands at one agent: whoever comes first acts, nobody starts a second one, and a stop that was heard stays.
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

/** All of them at the same moment; their exit codes. */
const atOnce = (...lines: readonly string[]): number[] => {
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

it("of five that run it, one does; the others are told", async () => {
  const codes = atOnce(...Array.from({ length: 5 }, () => "run m1 -d -- sleep 777"));
  expect(codes.sort()).toEqual([0, 10, 10, 10, 10]);
  await world.until("its command", () => sleepers().length > 0);
  expect(sleepers()).toEqual([world.life("m1").agent.pid]);
});

it("of five that revive it, one does; the others find it running", async () => {
  world.run(["run", "m1", "-d", "--", "sleep", "777"]);
  world.run(["stop", "m1", "--no-checkpoint", "--grace", "0"]);
  expect(atOnce(...Array.from({ length: 5 }, () => "revive m1"))).toEqual([0, 0, 0, 0, 0]);
  expect(world.life("m1").epoch).toBe(2);
  await world.until("its command", () => sleepers().length > 0);
  expect(sleepers()).toEqual([world.life("m1").agent.pid]);
});

it("stops and revivals at once end in one of the two, with what the record says", async () => {
  await world.openPit();
  world.run(["run", "m1", "-d", "--revive", "yes", "--", "sleep", "777"]);
  const codes = atOnce("stop m1 --no-checkpoint", "revive m1", "stop m1 --no-checkpoint", "revive m1");
  expect(codes).toEqual([0, 0, 0, 0]);
  const wish = world.record("m1").wish;
  await world.until("a state that stays", () => ["running", "stopped"].includes(world.state("m1")));
  expect(world.state("m1")).toBe(wish === "stopped" ? "stopped" : "running");
  await world.until("as many as there should be", () => sleepers().length === (wish === "stopped" ? 0 : 1));
});
