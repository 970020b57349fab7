// SIGKILL at every crash point of init and heartbeat, at the first and at later hits: existing files stay intact, and running
// the same command again completes the work.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { BUILT, createWorld, type World } from "./hermetic.ts";

const points = listCrashPoints(join(import.meta.dirname, "../../src"))
  .map(({ name }) => name)
  .filter((name) => name.startsWith("cell.") || name.startsWith("durable."));
const HITS = [1, 2, 3, 5, 8];

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

/** Runs a command that is killed at the nth hit of a crash point. Returns false if it is never hit that often. */
function kill(words: readonly string[], point: string, nth: number): boolean {
  const { exit, stderr } = world.run(words, {
    nodeOptions: ["--import", join(BUILT, "dist/arm-crash-point.js")],
    env: { LAZARUS_CRASH_AT: `${point}#${nth}` },
  });
  if (exit !== null) expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  return exit === null;
}

function expectWhole(mission: string): void {
  const root = join(world.missions, mission);
  for (const path of ["meta/mission.json", "config/cell.json", "state/heartbeat.json"]) {
    expect(JSON.parse(readFileSync(join(root, path), "utf8")).mission_id).toBe(mission);
  }
}

function leftovers(mission: string): string[] {
  const names = readdirSync(join(world.missions, mission), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".tmp") || name.includes(".lazarus-"));
}

it("finds the crash points of init", () => {
  expect(points).toEqual(expect.arrayContaining(["cell.init.seed-created", "cell.worktree.cloned"]));
});

describe("init", () => {
  const createRepository = (): string => {
    const repository = world.path("repo");
    execFileSync("git", ["init", "--quiet", repository]);
    writeFileSync(join(repository, "code"), "code");
    const identity = ["-c", "user.name=t", "-c", "user.email=t@e"];
    execFileSync("git", ["-C", repository, "add", "."]);
    execFileSync("git", ["-C", repository, ...identity, "commit", "--quiet", "-m1"]);
    return repository;
  };

  // Only the points of the worktree need --repo; plain init reaches all others without running git.
  it.each(points)(
    "killed at %s and run again completes the cell and leaves no temporary files",
    async (point) => {
      const repository = point.startsWith("cell.worktree.") ? createRepository() : undefined;
      let kills = 0;
      for (const nth of HITS) {
        const mission = `m${nth}`;
        const words = [
          "init",
          mission,
          ...(repository === undefined ? [] : ["--repo", repository]),
          "--quiet",
        ];
        if (!kill(words, point, nth)) break;
        kills += 1;
        expect(await world.call(words)).toMatchObject({ exit: 0, stderr: "" });
        expectWhole(mission);
        expect(leftovers(mission)).toEqual([]);
        if (repository !== undefined)
          expect(readFileSync(join(world.missions, mission, "worktree/code"), "utf8")).toBe("code");
      }
      expect((await world.call(["scan", "--check"])).exit).toBe(0);
      if (/^cell\.(init|worktree)\./.test(point)) expect(kills).toBeGreaterThan(0);
    },
  );
});

it.each(points.filter((name) => /^durable\.(temporary|replace)\./.test(name)))(
  "a heartbeat killed at %s leaves the old or the new file, and the next heartbeat works",
  async (point) => {
    await world.call(["init", "m1"]);
    await world.call(["heartbeat", "m1", "--status", "old"]);
    const file = "home/missions/m1/state/heartbeat.json";
    kill(["heartbeat", "m1", "--status", "new"], point, 1);
    expect(JSON.parse(world.read(file))).toMatchObject({ status: expect.stringMatching(/^(old|new)$/) });
    expect((await world.call(["heartbeat", "m1", "--status", "next"])).exit).toBe(0);
    expect(JSON.parse(world.read(file))).toMatchObject({ status: "next" });
    await world.call(["init", "m1"]);
    expect(leftovers("m1")).toEqual([]);
  },
);
