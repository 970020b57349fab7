// A restore is refused under a live agent, and no agent starts in a half-restored cell.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentPaths } from "../../src/cell/agent-paths.ts";
import { homeConfig } from "../../src/cell/home-config.ts";
import { tryAcquireLock } from "../../src/platform/lock.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openMission, openVault } from "../../src/snapshot/open-mission.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { BUILT, LAUNCHER } from "../cli/hermetic.ts";
import { askRaw } from "../http/test-server.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const inCell = (path: string) => join(world.missions, "m1", path);
const missionLock = () => agentPaths(homeConfig(world.home).config, "m1").lock;

it("refuses restore and undo under a live agent, even of one path, and leaves its log alone", async () => {
  const script = "while :; do echo tick; echo now > note; sleep 0.05; done";
  world.run(["run", "m1", "-d", "--", "sh", "-c", script]);
  const ticks = () => world.log("m1").split("tick").length;
  await world.until("output", () => ticks() > 3);
  await world.call(["checkpoint", "m1"]);
  const { ino } = statSync(inCell("logs/agent.log"));
  for (const words of [
    ["restore", "m1"],
    ["undo", "m1"],
    ["restore", "m1", "--path", "worktree/note"],
  ]) {
    const { exit, stderr } = await world.call(words);
    expect([words, exit]).toEqual([words, 10]);
    expect(stderr).toContain("try: the same command with --stop");
    expect(stderr).not.toContain("may be running");
    expect(await world.call(["heartbeat", "m1"])).toMatchObject({ exit: 0 });
  }
  expect(world.checkpoints("m1").map(({ reason }) => reason)).toEqual(["baseline", "manual"]);
  expect((await world.call(["restore", "m1", "--to", "copy"])).exit).toBe(0);
  const seen = ticks();
  await world.until("more output in the same file", () => ticks() > seen);
  expect(ino).toBe(statSync(inCell("logs/agent.log")).ino);
});

it("--stop stops the agent, restores and revives it, and undo does the same", async () => {
  const script = "trap 'echo bye > last; exit 0' TERM; echo life >> lives; while :; do sleep 0.05; done";
  await world.call(["run", "m1", "-d", "--", "sh", "-c", script]);
  const lives = () => readFileSync(inCell("worktree/lives"), "utf8").split("life").length - 1;
  await world.until("its work", () => lives() === 1);
  const { stdout } = await world.call(["checkpoint", "m1"]);
  writeFileSync(inCell("worktree/later"), "");
  // The latest checkpoint is the latest from before the stop.
  const restored = await world.call(["restore", "m1", "--stop"]);
  expect([restored.exit, restored.stderr]).toEqual([0, expect.stringContaining("running again as life 2")]);
  await world.until("the second life", () => lives() === 2);
  expect([existsSync(inCell("worktree/later")), existsSync(inCell("worktree/last"))]).toEqual([false, false]);
  const note = JSON.parse(readFileSync(inCell("state/resume.json"), "utf8"));
  expect(note).toMatchObject({
    restored_to: stdout.trim(),
    scene_checkpoint: world.record("m1").scene.checkpoint,
  });
  expect(world.record("m1").wish).toBe("running");
  expect((await world.call(["undo", "m1", "--stop"])).stderr).toContain("running again as life 3");
  expect([existsSync(inCell("worktree/later")), existsSync(inCell("worktree/last"))]).toEqual([true, true]);
  // An unknown checkpoint is refused before anything is stopped.
  expect((await world.call(["restore", "m1", "20011231", "--stop"])).exit).toBe(6);
  expect([world.state("m1"), world.life("m1").epoch]).toEqual(["running", 3]);
});

it("over HTTP: 423 under a live agent, unless stop is true", async () => {
  await world.openPit();
  await world.call(["run", "m1", "-d", "--", "sleep", "777"]);
  const socketPath = join(world.home, "run", "pit.sock");
  await world.until("the socket", () => existsSync(socketPath));
  const path = "/v1/missions/m1/restore";
  const authorization = `Bearer ${readFileSync(join(world.home, "run", "token"), "utf8").trim()}`;
  const headers = { host: "localhost", authorization };
  const post = (body: object) =>
    askRaw({ socketPath, path, method: "POST", headers, body: JSON.stringify(body) });
  const refused = await post({});
  expect([refused.status, JSON.parse(refused.body).code]).toEqual([423, "AGENT_RUNNING"]);
  const restored = await post({ stop: true });
  expect(restored.status).toBe(200);
  expect(JSON.parse(restored.body).checkpoint).toBe(world.checkpoints("m1")[0]?.checkpoint_id);
  await world.until("the second life", () => world.life("m1").epoch === 2 && world.state("m1") === "running");
});

it("a restore after the agent has exited does not warn about its last heartbeat, but about a later one", async () => {
  world.run([
    "run",
    "m1",
    "--revive",
    "no",
    "--",
    "sh",
    "-c",
    `${process.execPath} ${LAUNCHER} heartbeat m1`,
  ]);
  expect((await world.call(["restore", "m1"])).stderr).not.toContain("may be running");
  await world.call(["heartbeat", "m1"]);
  expect((await world.call(["restore", "m1"])).stderr).toContain("an agent may be running in m1");
});

it("a revival finishes a restore that was killed half-way before it starts the agent", async () => {
  const script = "cat a b > seen; exec sleep 777";
  world.run(["run", "m1", "-d", "--revive", "no", "--", "sh", "-c", script]);
  await world.call(["stop", "m1", "--grace", "0", "--no-checkpoint"]);
  for (const name of ["a", "b"]) writeFileSync(inCell(`worktree/${name}`), `old ${name}\n`);
  rmSync(inCell("worktree/seen"), { force: true });
  await world.call(["checkpoint", "m1"]);
  for (const name of ["a", "b"]) writeFileSync(inCell(`worktree/${name}`), `new ${name}\n`);
  const arm = pathToFileURL(join(BUILT, "dist", "arm-crash-point.js")).href;
  const killed = spawnSync(process.execPath, ["--import", arm, LAUNCHER, "restore", "m1"], {
    cwd: world.cwd,
    env: { ...world.env, LAZARUS_CRASH_AT: "snapshot.restore.journalled" },
  });
  expect(killed.signal).toBe("SIGKILL");
  expect(readFileSync(inCell("worktree/a"), "utf8")).toBe("new a\n");
  expect((await world.call(["revive", "m1"])).exit).toBe(0);
  await world.until("what the agent saw", () => existsSync(inCell("worktree/seen")));
  await world.until("both files", () => readFileSync(inCell("worktree/seen"), "utf8").endsWith("b\n"));
  expect(readFileSync(inCell("worktree/seen"), "utf8")).toBe("old a\nold b\n");
});

it("holds the mission's lock until a restore is done", async () => {
  await world.call(["init", "m1"]);
  await world.call(["checkpoint", "m1"]);
  writeFileSync(inCell("worktree/later"), "");
  const mission = openMission("m1", { home: world.home });
  const vaultLock = await openVault(join(world.home, "vault"), "m1").lock("test");
  const restoring = restoreCell(mission, {});
  await world.until("the lock", () => {
    using lock = tryAcquireLock(systemMachine, missionLock(), "test");
    return lock === undefined;
  });
  vaultLock[Symbol.dispose]();
  expect((await restoring).changes.removed).toEqual(["worktree/later"]);
  using free = tryAcquireLock(systemMachine, missionLock(), "test");
  expect(free).toBeDefined();
  // Locks alone do not make it a mission with an agent.
  expect((await world.call(["status", "--json"])).stdout).toContain('"state":"none"');
});
