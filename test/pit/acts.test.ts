// What the pit's acts promise when somebody else is slow: a keeper, someone who only looks at a lock, an agent that has
// only just begun. In this process, so that the slow ones wait for as long as the test says.
import { closeSync, mkdirSync, openSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cellPaths } from "../../src/cell/layout.ts";
import { type MissionId, parseMissionId } from "../../src/cell/mission-id.ts";
import { startMission, stopMission } from "../../src/pit/actions.ts";
import { endProcesses } from "../../src/pit/death/kill.ts";
import { pitLockFile } from "../../src/pit/paths.ts";
import { beginLife, type Orders, order } from "../../src/pit/record/record.ts";
import { agentPlaces, writeRecord } from "../../src/pit/record/store.ts";
import { openPit } from "../../src/pit/supervise/daemon.ts";
import { createRounds } from "../../src/pit/supervise/periodic-checks.ts";
import type { Watched } from "../../src/pit/supervise/watch-list.ts";
import { tryAcquireLock } from "../../src/platform/lock.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { posixSupport } from "../../src/platform/posix.ts";
import { createScene, type Scene } from "../http/scene.ts";

let scene: Scene;
let mission: MissionId;
let orders: Orders;
beforeEach(async () => {
  scene = await createScene();
  mission = parseMissionId("m1");
  orders = {
    mission,
    agent: "sleep",
    command: ["sleep", "600"],
    cwd: null,
    env: {},
    revive: "no",
    substitute: null,
    stall_seconds: 3,
  };
});
afterEach(() => scene[Symbol.asyncDispose]());

/** The record of a first life that nobody started. */
function recordLife(): void {
  const { config, machine } = scene.pitContext;
  const life = {
    epoch: 1,
    started_ms: 1,
    how: "start",
    command: ["sleep"],
    oom_kills: null,
    log_bytes: 0,
  } as const;
  writeRecord(machine, config, beginLife(order(undefined, orders, 1), life));
}

/** Takes a lock as someone does who only looks, or as another program; closing lets go of it. */
function hold(path: string, how: "exclusive" | "shared"): Disposable {
  const support = posixSupport();
  if (!support.ok) throw new Error(support.reason);
  mkdirSync(dirname(path), { recursive: true });
  const fd = openSync(path, "a+");
  expect(support.posix.tryLock(fd, how)).toBe(true);
  return { [Symbol.dispose]: () => closeSync(fd) };
}

describe("the end of a life", () => {
  it("whose agent has gone in time needed no SIGKILL, however long its keeper takes", async () => {
    recordLife();
    const keeper = tryAcquireLock(
      systemMachine,
      agentPlaces(scene.config, mission).lifeLock,
      "a slow keeper",
    )!;
    const ending = endProcesses(scene.pitContext, mission, 0);
    keeper[Symbol.dispose]();
    expect(await ending).toBe(false);
  });
});

describe("a start", () => {
  it("waits for someone who only looks at the lock, however long that takes", async () => {
    const looker = hold(agentPlaces(scene.config, mission).lifeLock, "shared");
    const starting = startMission(scene.pitContext, orders);
    // Longer than it waits for a keeper.
    await new Promise((resolve) => setTimeout(resolve, 500));
    looker[Symbol.dispose]();
    expect(await starting).toMatchObject({ epoch: 1, life: { epoch: 1 } });
    await stopMission(scene.pitContext, mission, { checkpoint: false, graceSeconds: 0 });
  });
});

describe("a pit", () => {
  it("opens although someone looks at its lock", async () => {
    const looker = hold(pitLockFile(scene.config.run_dir), "shared");
    const opening = openPit(scene.pitContext);
    looker[Symbol.dispose]();
    using pit = await opening;
    expect(pit.watching).toBe(0);
  });

  it("is refused by name, also when the other one has not said its name yet", async () => {
    const path = pitLockFile(scene.config.run_dir);
    using _other = hold(path, "exclusive");
    const refused = openPit(scene.pitContext);
    writeFileSync(path, JSON.stringify({ pid: process.pid, host: hostname(), purpose: "pit", since: 1 }));
    await expect(refused).rejects.toThrow(`process ${process.pid}`);
  });
});

describe("an agent without output", () => {
  /** What a round says after ten silent seconds; everything in the worktree has the same age. */
  const judge = (agoMs: number) => {
    recordLife();
    const { worktree } = cellPaths(scene.config, mission);
    const paths = ["a", "a/b", "a/b/file"].map((path) => join(worktree, path));
    mkdirSync(paths[1]!, { recursive: true });
    writeFileSync(paths[2]!, "");
    const at = (Date.now() - agoMs) / 1000;
    for (const path of paths) utimesSync(path, at, at);
    const identity = { pid: 1, startTime: "1", bootId: "boot" };
    const one: Watched = {
      mission,
      life: { epoch: 1, keeper: identity, agent: identity, detached: true },
      fd: undefined,
      clocks: undefined,
      lookedMs: -10_000,
      checkpointedMs: 0,
    };
    const rounds = createRounds(scene.pitContext, {
      get: () => one,
      all: () => [one],
      size: 1,
      add: () => true,
      remove() {},
      ended: () => [],
      clear() {},
    });
    return [0, 10_000].flatMap((ms) => rounds.findStalled(ms)).map(({ reason }) => reason);
  };

  it("has stalled when its files are silent, too", () => {
    expect(judge(3_600_000)).toEqual(["no output, file change or heartbeat for 10 s (limit 3 s)"]);
  });

  it("is at work when a file deep in the worktree changes", () => {
    expect(judge(-3_600_000)).toEqual([]);
  });
});
