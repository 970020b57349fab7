// `lazarus claude …`, `lazarus shell-init`, `lazarus effects`: the agent's command line works unchanged after `lazarus`.
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUILT_IN } from "../../src/agents/adapters.ts";
import { AGENT_NAMES } from "../../src/cli/catalogue.ts";
import { HEADLESS } from "../agents/fake/headless.ts";
import { countEffects, installFakes, readRequests } from "../agents/fake/install.ts";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
let app: string;
beforeEach(() => {
  world = createWorld();
  app = join(world.directory, "app");
  mkdirSync(app);
});
afterEach(() => world[Symbol.dispose]());

it("every adapter is a command", () => {
  expect(AGENT_NAMES).toEqual(BUILT_IN.map(({ name }) => name));
});

it("run --mcp is refused for an agent that has no option for it, before anything is created", async () => {
  for (const command of [
    ["sh", "-c", "true"],
    ["pi", "-p", "x"],
  ])
    expect(await world.call(["run", "m9", "--mcp", "--", ...command])).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining(`--mcp: ${command[0]} has no option for the MCP servers of one run`),
    });
  expect(existsSync(world.path("home/missions/m9"))).toBe(false);
});

describe("lazarus claude", () => {
  const claude = (words: readonly string[], env: Record<string, string> = {}) => {
    const bin = installFakes(join(world.directory, "agents"), "claude");
    return world.run(["claude", ...words], {
      cwd: app,
      env: {
        PATH: `${bin}:${world.env.PATH}`,
        FAKE_DIRECTORY: join(world.directory, "traces"),
        FAKE_STEPS: "2",
        ...HEADLESS.claude!.key,
        ...env,
      },
    });
  };

  it("works in the current directory, in the foreground, and saves it under the directory's name", () => {
    const { exit, stdout, stderr } = claude(["-p", "Write the book", "--allowedTools", "Bash"]);
    expect({ exit, stdout }).toEqual({ exit: 0, stdout: "The book is done.\n" });
    expect(stderr).toContain("conversation of claude: saved, and continued after a crash");
    expect(countEffects(join(app, "outbox.log"))).toEqual({ 1: 1, 2: 1 });
    const { missions } = world.json("status --json") as { missions: { mission_id: string; state: string }[] };
    expect(missions).toMatchObject([{ mission_id: "app", state: "finished" }]);
  });

  it("returns the exit code of the agent, and a new prompt starts a new session in the same mission", async () => {
    claude(["-p", "Write the book"]);
    expect(claude(["-p", "Write another"], { FAKE_FAIL: "401*1@1" })).toMatchObject({ exit: 1 });
    const sessions = readRequests(join(world.directory, "traces")).map(({ session }) => session);
    expect(new Set(sessions).size).toBe(2);
    expect((await world.call(["why", "app"])).stdout).toContain("authentication failed");
  });

  it("passes commands without a conversation on unchanged", () => {
    const own = join(world.directory, "plain");
    mkdirSync(own);
    chmodSync(world.write("plain/claude", '#!/bin/sh\necho "$@" in "$PWD"; exit 7\n'), 0o755);
    const { exit, stdout } = world.run(["claude", "mcp", "list", "--help", "--json"], {
      cwd: app,
      env: { PATH: `${own}:${world.env.PATH}` },
    });
    expect({ exit, stdout }).toEqual({ exit: 7, stdout: `mcp list --help --json in ${realpathSync(app)}\n` });
  });

  it.each([["--help"], ["-p", "Write the book"]])("says that the agent is not installed: %s", (...words) => {
    const { exit, stderr } = world.run(["claude", ...words], { cwd: app, env: { PATH: app } });
    expect(exit).toBe(127);
    expect(stderr).toContain('the command "claude" is not on PATH\n  try: check the name and PATH');
  });
});

it("lazarus shell-init prints functions for the agents that are installed", () => {
  const bin = installFakes(join(world.directory, "agents"), "claude");
  const { stdout } = world.run(["shell-init", "bash"]);
  const script = `PATH=${bin}:$PATH; eval "$(cat)"; type claude; type codex`;
  world.write("init.sh", stdout);
  const shell = world.shell(`{ ${script}; } <${world.path("init.sh")}`, "/bin/bash");
  expect(shell.stdout).toContain('command lazarus claude "$@"');
  expect(world.run(["shell-init", "tcsh"]).exit).toBe(2);
  expect(readFileSync(world.path("init.sh"), "utf8").split("\n")).toHaveLength(BUILT_IN.length + 1);
});

it("lazarus effects lists what a mission did", async () => {
  await world.call(["init", "m1"]);
  const flow = "flow start -w report --agent anna --idempotency r1 --step send --remaining send --root";
  world.run([...flow.split(" "), join(world.missions, "m1", "worktree")]);
  const once = ["flow", "once", "-w", "report", "--key", "send"];
  world.run([...once, "--root", join(world.missions, "m1", "worktree"), "--", "true"]);
  expect((await world.call(["effects", "m1"])).stdout).toMatch(/^flow report, "send" \(true\): done at /);
  expect((await world.call(["effects", "m1", "--unknown"])).stdout).toBe("");
  expect((await world.call(["effects", "nobody"])).exit).not.toBe(0);
});
