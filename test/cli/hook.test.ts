// `lazarus hook` as a process: it records events, wakes the pit, writes heartbeats, and never disturbs the agent.
import { existsSync, readFileSync, utimesSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
  world.run(["init", "m1"]);
});
afterEach(() => world[Symbol.dispose]());

const LIFE = "LAZARUS_MISSION=m1 LAZARUS_EPOCH=1";
const lines = () => {
  const file = world.path("home/run/agents/m1/hooks.jsonl");
  return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : [];
};
const SILENT = { exit: 0, stdout: "", stderr: "" };

it("records an event from stdin, wakes the pit and writes a heartbeat when due", () => {
  const heartbeat = world.path("home/missions/m1/state/heartbeat.json");
  utimesSync(heartbeat, 1, 1);
  expect(world.shell(`echo '{"kind":"turn-end"}' | ${LIFE} lazarus hook mybot`)).toEqual(SILENT);
  expect(JSON.parse(lines()[0]!)).toMatchObject({ epoch: 1, kind: "turn-end" });
  expect(existsSync(world.path("home/run/bell/m1"))).toBe(true);
  expect(JSON.parse(readFileSync(heartbeat, "utf8"))).toMatchObject({ status: "alive" });
});

it("takes the event or its JSON as an argument", () => {
  world.shell(`${LIFE} lazarus hook mybot prompt </dev/null`);
  world.shell(`${LIFE} lazarus hook mybot '{"kind":"compaction"}'`);
  expect(lines().map((line) => JSON.parse(line).kind)).toEqual(["prompt", "compaction"]);
});

it("does nothing outside of a life, or when run passes the hooks itself", () => {
  expect(world.shell("lazarus hook mybot turn-end </dev/null")).toEqual(SILENT);
  expect(world.shell(`${LIFE} LAZARUS_HOOKS=run lazarus hook mybot turn-end --installed </dev/null`)).toEqual(
    SILENT,
  );
  expect(lines()).toEqual([]);
});

it("reports to the mission of a protected directory when it is installed", () => {
  world.write("app/x", "");
  world.run(["protect", world.path("app"), "--mission", "app"]);
  const report = (flags: string) =>
    world.shell(`cd ${world.path("app")} && lazarus hook mybot turn-end ${flags} </dev/null`);
  expect(report("")).toEqual(SILENT);
  const file = world.path("home/run/agents/app/hooks.jsonl");
  expect(existsSync(file)).toBe(false);
  expect(report("--installed")).toEqual(SILENT);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ epoch: 0, kind: "turn-end" });
});

it("never fails the agent: a problem is only logged", () => {
  expect(world.shell(`echo 'not json' | ${LIFE} lazarus hook mybot`)).toEqual(SILENT);
  expect(world.read("home/run/hook.log")).toMatch(/ mybot: .*not valid JSON/);
  world.write("home/config.json", "{");
  expect(world.shell(`${LIFE} lazarus hook mybot turn-end </dev/null`)).toEqual(SILENT);
});
