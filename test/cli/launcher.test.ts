// The launcher on an older Node of the host: it switches to the newer one that npm installed, or prints what is missing.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, existsSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { BUILT, createWorld, LAUNCHER, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const older = ["/usr/bin/node", "/usr/local/bin/node", "/opt/homebrew/bin/node"].find(
  (path) => existsSync(path) && major(path) < 24 && major(path) >= 20,
);

function major(node: string): number {
  return Number.parseInt(execFileSync(node, ["-p", "process.versions.node"], { encoding: "utf8" }), 10);
}

/** A copy without node_modules, so that no newer Node is found. */
function bareCheckout(place: string, ...parts: string[]): string {
  const bare = world.path(place);
  mkdirSync(bare, { recursive: true });
  for (const name of parts) cpSync(join(BUILT, name), join(bare, name), { recursive: true });
  return join(bare, "bin", "lazarus.js");
}

describe.skipIf(older === undefined)(
  "on an older Node (skipped where the host has none from 20 to 23)",
  () => {
    const onOlder = (words: string[], env = {}) => world.run(words, { node: older!, env });

    it("uses the Node that npm installed", () => {
      expect(onOlder(["init", "m1"])).toMatchObject({ exit: 0, stdout: `${join(world.missions, "m1")}\n` });
      expect(onOlder(["doctor"]).stdout).toContain(`Node ${process.versions.node}`);
    });

    it("passes through exit codes and output", () => {
      expect(onOlder(["scna"])).toEqual(world.run(["scna"]));
    });

    it("records the caller of a job, not the launcher", () => {
      onOlder(["job", "beat", "j1"]);
      expect(JSON.parse(world.read("home/heartbeats/j1.last")).pid).toBe(process.pid);
    });

    it("forwards signals and exits like its child", async () => {
      world.run(["init", "m1"]);
      const child = spawn(older!, [LAUNCHER, "scan", "--watch", "--interval", "0.05"], {
        cwd: world.cwd,
        env: world.env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      const ended = once(child, "exit");
      await once(child.stdout, "data");
      child.stdout.resume();
      child.kill("SIGTERM");
      expect(await ended).toEqual([0, null]);
    });

    it.each([
      ["a clone", "clone", "npm ci   (in <world>/clone)"],
      ["a project", "project/node_modules/lazarus", "npm install node@24   (in <world>/project)"],
      ["a global install", "lib/node_modules/lazarus", "install Node 24 from https://nodejs.org"],
    ])("without a newer Node prints what to type in %s", (_, place, remedy) => {
      world.write("project/package.json", "{}");
      const { status, stderr } = runWith(older!, bareCheckout(place, "bin", "package.json"));
      expect(status).toBe(1);
      expect(stderr.replaceAll(world.directory, "<world>").replace(/\d+\.\d+\.\d+/, "<version>")).toBe(
        `error: Lazarus needs Node 24 or newer, and this is Node <version>\n  try: ${remedy}\n`,
      );
    });

    function runWith(node: string, launcher: string): { status: number | null; stderr: string } {
      const { exit, stderr } = world.shell(`"${node}" "${launcher}" scan`);
      return { status: exit, stderr };
    }
  },
);

describe("on a Node that is new enough", () => {
  it("reports that a checkout has not been built", () => {
    const launcher = bareCheckout("bare", "bin", "package.json");
    expect(world.shell(`"${process.execPath}" "${launcher}" scan`)).toEqual({
      exit: 1,
      stdout: "",
      stderr: "error: this checkout of Lazarus has not been built yet\n  try: npm run build\n",
    });
  });

  it("works through a symlink, as npm installs it", () => {
    symlinkSync(LAUNCHER, world.path("bin", "linked"));
    const onThisNode = `PATH="${dirname(process.execPath)}:$PATH"`;
    expect(world.shell(`${onThisNode} linked --version`)).toEqual(world.shell("lazarus --version"));
  });

  it("keeps its compile cache in the user's cache directory, and works without one", () => {
    world.run(["scan"], { env: { NODE_COMPILE_CACHE: undefined } });
    expect(existsSync(world.path("user/.cache/lazarus/compile"))).toBe(true);
    for (const HOME of [undefined, world.write("file", "")])
      expect(world.run(["scan"], { env: { HOME, NODE_COMPILE_CACHE: undefined } }).exit).toBe(0);
  });

  it("does not pass its own variables to its children", () => {
    chmodSync(world.write("bin/git", '#!/bin/sh\nenv > "$HOME/seen"\n'), 0o755);
    world.run(["doctor"], { env: { LAZARUS_CALLER_PID: "1" } });
    expect(world.read("user/seen")).toContain("LAZARUS_HOME=");
    expect(world.read("user/seen")).not.toContain("LAZARUS_CALLER_PID");
  });
});
