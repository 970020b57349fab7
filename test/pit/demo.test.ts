// `npm start`: without a terminal the demo exits 0 on its own, checks what it claims, and deletes its files.
import { chmodSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentScript } from "../../src/cli/commands/setup/demo-agent.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

it("kills an agent, revives it, and counts each effect once", () => {
  const tmp = join(world.directory, "user");
  const { exit, stdout, stderr } = world.run(["demo"], {
    env: { TMPDIR: tmp, LAZARUS_HOME: undefined, npm_lifecycle_event: "start" },
    timeout: 300_000,
  });
  expect(stdout).toContain("To try it with an agent of your own:\n  npm link\n  lazarus pit &\n");
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  for (let n = 1; n <= 10; n += 1)
    expect(stdout.match(new RegExp(`letter ${n}, sent by life ${n < 6 ? 1 : 2}\\n`, "g"))).toHaveLength(1);
  expect(stdout).toMatch(
    /kill -9 \d+ while it writes letter 6\n.*SIGKILL.*checkpoint \S+ taken \(crash\)\n.*agent restarted \(life 2\), \d+ ms/s,
  );
  expect(stdout).toContain("10 letters sent, each exactly once, by 2 lives of the agent");
  expect(readdirSync(tmp)).not.toContainEqual(expect.stringMatching(/^lazarus-demo/));
  expect(world.processes()).toEqual([]);
}, 300_000);

it("finds its own launcher in any directory", () => {
  const node = world.write("it's here/node", '#!/bin/sh\necho "$@"\n');
  chmodSync(node, 0o755);
  const script = agentScript(node, "/a b/$x")
    .split("\n")
    .find((line) => line.startsWith("lazarus()"));
  expect(world.shell(`${script}\nlazarus flow "a b"`).stdout).toBe("/a b/$x flow a b\n");
});
