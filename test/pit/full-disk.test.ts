// A runaway agent has filled the disk of the home: the user can still stop and pause it, and gets an alert.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
let isMounted = false;
beforeEach(() => {
  world = createPitWorld();
  isMounted = false;
});
afterEach(async () => {
  // Lazily: agents may still have files open.
  if (isMounted) spawnSync("umount", ["-l", world.home]);
  await world.close();
});

function mountSmallDisk({ skip }: TestContext): void {
  if (process.getuid?.() !== 0) skip("mounting a small disk needs root");
  const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=16m", "none", world.home], {
    encoding: "utf8",
  });
  if (mount.status !== 0) skip(`cannot mount a tmpfs: ${mount.stderr?.trim() ?? mount.error}`);
  isMounted = true;
  const alerts = join(world.directory, "alerts");
  const command = `cat >> ${alerts}; echo >> ${alerts}`;
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ alerts: { command } }));
}

/** Takes every byte that becomes free, until it is stopped. In the cell, so that a checkpoint needs space too. */
const RUNAWAY = 'while :; do head -c 65536 /dev/urandom >> "$0" 2>/dev/null; done';
const filler = () => join(world.missions, "m1", "worktree", "filler");
const isFull = () => spawnSync("df", [world.home], { encoding: "utf8" }).stdout.includes("100%");
const startRunaway = () => world.run(["run", "m1", "-d", "--", "sh", "-c", RUNAWAY, "filler"]);
const isRunning = (pid: number) => existsSync(`/proc/${pid}`) && !"ZX".includes(world.processState(pid)!);

describe("on a full disk", () => {
  it("an agent is stopped, and the stop is recorded", async (context) => {
    mountSmallDisk(context);
    await world.openPit();
    await world.until("the reserve", () => existsSync(join(world.home, "run", "reserve")));
    startRunaway();
    const { agent } = world.life("m1");
    await world.until("a full disk", isFull);
    const { stdout, stderr } = world.run(["stop", "m1", "--grace", "1"]);
    expect(stdout + stderr).toMatch(/m1/);
    expect(isRunning(agent.pid)).toBe(false);
    expect(world.record("m1").wish).toBe("stopped");
  });

  it("an agent is paused", async (context) => {
    mountSmallDisk(context);
    startRunaway();
    const { agent } = world.life("m1");
    await world.until("a full disk", isFull);
    world.run(["pause", "m1"]);
    expect(world.processState(agent.pid)).toBe("T");
  });

  it("an alert is sent when a death cannot be saved, and work continues when there is space", async (context) => {
    mountSmallDisk(context);
    await world.openPit();
    startRunaway();
    await world.until("a full disk", isFull);
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    const alerts = join(world.directory, "alerts");
    await world.until("an alert", () => readFileSync(alerts, "utf8").includes("disk is full"));
    rmSync(filler());
    await world.until("the crash checkpoint", () =>
      world.checkpoints("m1").some(({ reason }) => reason === "crash"),
    );
  });
});
