// The kernel decides which processes belong to a life, not names, paths or files (INV-4).
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunOptions } from "../cli/hermetic.ts";
import { giveToPlainUser, isRoot } from "../plain-user.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const agents = (file: string, mission = "m1") => join(world.home, "run", "agents", mission, file);
const isRunning = (pid: number) => existsSync(`/proc/${pid}`) && world.processState(pid) !== "Z";
const numberIn = (name: string) => Number(world.read(name).trim());

/** Root may create control groups, a plain user usually not: both mechanisms are tested where root runs the tests. */
const USERS: readonly (readonly [string, RunOptions])[] = isRoot
  ? [
      ["root", {}],
      ["a plain user", { asPlainUser: true }],
    ]
  : [["this user", {}]];

describe.each(USERS)("for %s", (_, as) => {
  beforeEach(() => {
    world.write("config.json", JSON.stringify({ pit: { leftover_grace_seconds: 0.2 } }));
    writeFileSync(join(world.home, "config.json"), world.read("config.json"));
    if (as.asPlainUser) giveToPlainUser(world.directory);
  });

  it("a process that calls itself a keeper is killed with its agent", async () => {
    const left = join(world.directory, "left");
    // The name is all that it has in common with a keeper.
    const script = world.write(
      "keeper-0123456789ab.sh",
      `trap "" TERM\necho $$ > '${left}'\nwhile :; do sleep 0.1; done\n`,
    );
    const leave = `setsid sh '${script}' & until [ -s '${left}' ]; do sleep 0.05; done; exit 3`;
    world.run(["run", "m1", "-d", ...sh(leave)], as);
    await world.until("the exit", () => existsSync(agents("exit.json")));
    expect(isRunning(numberIn("left"))).toBe(false);
  });

  it("the agent of another mission survives, although this agent started it", async () => {
    const nested = `lazarus run m2 -d -- sh -c 'exec sleep 600' >/dev/null 2>&1; exit 3`;
    world.run(["run", "m1", "-d", ...sh(nested)], as);
    await world.until("the exit", () => existsSync(agents("exit.json")));
    await world.until("the other agent", () => existsSync(agents("life.json", "m2")));
    expect(isRunning(world.life("m2").agent.pid)).toBe(true);
    expect(isRunning(world.life("m2").keeper.pid)).toBe(true);
    expect(world.state("m2")).toBe("running");
    expect(world.run(["stop", "m2", "--no-checkpoint"], as).exit).toBe(0);
    expect(world.processes()).toEqual([]);
  });

  it("an orphan is found although the home is given through a symbolic link", async () => {
    const link = join(world.directory, "link");
    symlinkSync(world.home, link);
    const pidFile = join(world.directory, "orphan");
    const orphan = `setsid sh -c 'echo $$ > "${pidFile}"; while :; do sleep 0.1; done' & exec sleep 600`;
    world.run(["run", "m1", "-d", ...sh(orphan)], { ...as, env: { LAZARUS_HOME: link } });
    await world.until("the orphan", () => numberIn("orphan") > 0);
    const first = numberIn("orphan");
    process.kill(world.life("m1").keeper.pid, "SIGKILL");
    await world.until("the end", () => world.state("m1") === "ending");
    expect(world.run(["revive", "m1"], as).exit).toBe(0);
    expect(isRunning(first)).toBe(false);
    expect(world.record("m1").end.leftovers).toBeGreaterThanOrEqual(2);
  });

  it("a healthy agent whose lock file was deleted does not count as dead", async () => {
    world.run(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")], as);
    const { agent } = world.life("m1");
    rmSync(agents("life.lock"));
    expect(world.state("m1")).toBe("running");
    expect(world.run(["why", "m1"], as).stdout).toContain(`m1 is running (process ${agent.pid})`);
    expect(world.run(["revive", "m1"], as).stderr).toContain("already running");
    expect(world.run(["run", "m1", "-d", ...sh("exec sleep 600")], as).exit).toBe(10);
    // Nor does a new, unlocked file with its name.
    writeFileSync(agents("life.lock"), "");
    expect(world.state("m1")).toBe("running");
    expect(world.run(["run", "m1", "-d", ...sh("exec sleep 600")], as).exit).toBe(10);
    expect(isRunning(agent.pid)).toBe(true);
    expect(world.run(["stop", "m1", "--no-checkpoint"], as).stderr).toMatch(/^m1 is stopped; saved as/);
    expect(world.processes()).toEqual([]);
    expect(world.record("m1").end).toMatchObject({ signal: "SIGTERM" });
  });
});

it("the next pit adopts an agent whose lock file was deleted", async () => {
  await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
  await world.call(["run", "m2", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
  const { agent } = world.life("m1");
  rmSync(agents("life.lock"));
  await world.openPit();
  // Once the pit has revived the second, it has handled both.
  process.kill(world.life("m2").agent.pid, "SIGKILL");
  await world.until("life 2 of m2", () => world.life("m2").epoch === 2);
  expect(isRunning(agent.pid)).toBe(true);
  expect(world.record("m1")).toMatchObject({ end: null, life: { epoch: 1 } });
  process.kill(agent.pid, "SIGKILL");
  await world.until("life 2 of m1", () => world.life("m1").epoch === 2);
});

it("an orphan that takes the life lock is not mistaken for the keeper", async ({ skip }) => {
  if (world.shell("command -v flock").exit !== 0) skip("flock is not installed");
  const waiting = join(world.directory, "waiting");
  const take = `setsid sh -c 'echo $$ > "${waiting}"; exec flock "${agents("life.lock")}" sleep 600'`;
  await world.call(["run", "m1", "-d", ...sh(`${take} & exec sleep 600`)]);
  const waits = () =>
    new RegExp(`-> FLOCK .* ${numberIn("waiting")} `).test(readFileSync("/proc/locks", "utf8"));
  await world.until("a process that waits for the lock", waits);
  process.kill(world.life("m1").keeper.pid, "SIGKILL");
  await world.until("the end", () => world.state("m1") === "ending");
  expect((await world.call(["revive", "m1"])).exit).toBe(0);
  expect(world.life("m1").epoch).toBe(2);
});

it("in a control group, an orphan is found without session and environment", async ({ skip }) => {
  const pidFile = join(world.directory, "orphan");
  const orphan = `setsid env -i sh -c 'echo $$ > "${pidFile}"; trap "" TERM; while :; do sleep 0.1; done'`;
  await world.call(["run", "m1", "-d", ...sh(`(${orphan} &); exec sleep 600`)]);
  if (world.record("m1").life.cgroup === null) skip("this user may not create control groups");
  await world.until("the orphan", () => numberIn("orphan") > 0);
  expect(readFileSync(`/proc/${numberIn("orphan")}/cgroup`, "utf8")).toContain(world.record("m1").life.token);
  process.kill(world.life("m1").keeper.pid, "SIGKILL");
  await world.until("the end", () => world.state("m1") === "ending");
  expect((await world.call(["stop", "m1", "--no-checkpoint"])).exit).toBe(0);
  expect(isRunning(numberIn("orphan"))).toBe(false);
  expect(existsSync(world.record("m1").life.cgroup)).toBe(false);
});

describe("an agent that exits while its keeper is stopped", () => {
  /** The agent is a zombie, and its end is not recorded. */
  const exitUnderStoppedKeeper = async () => {
    const stop = "kill -STOP $PPID; until grep -q ' T ' /proc/$PPID/stat; do sleep 0.01; done; exit 3";
    await world.call(["run", "m1", "-d", ...sh(stop)]);
    const { keeper, agent } = world.life("m1");
    const states = () => [keeper, agent].map(({ pid }) => world.processState(pid)).join("");
    await world.until("the zombie", () => states() === "TZ");
    return keeper;
  };

  it("is not reported as running", async () => {
    const keeper = await exitUnderStoppedKeeper();
    expect(world.state("m1")).toBe("ending");
    const why = (await world.call(["why", "m1"])).stdout;
    expect(why).toContain(`the agent has exited, but its keeper (process ${keeper.pid}) is stopped`);
    expect(why).toContain("lazarus revive m1");
  });

  it("is revived without a pit when the user asks", async () => {
    await exitUnderStoppedKeeper();
    const { exit, stderr } = await world.call(["revive", "m1"]);
    expect({ exit, stderr }).toMatchObject({ exit: 0, stderr: expect.stringContaining("life 2") });
    expect(world.record("m1").end).toMatchObject({ epoch: 1, exit_code: 3 });
  });

  it("is handled by the pit, which continues the keeper", async () => {
    await exitUnderStoppedKeeper();
    await world.openPit();
    await world.until("the question", () => world.state("m1") === "asking");
    expect(world.record("m1").end).toMatchObject({ epoch: 1, exit_code: 3, kind: "crash" });
  });
});
