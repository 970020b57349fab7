// The pit's actions with slow processes: a slow keeper, a process that tests a lock. They run in this process, so that the
// test controls the timing.
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { agentPaths } from "../../src/cell/agent-paths.ts";
import { type MissionId, parseMissionId } from "../../src/cell/mission-id.ts";
import { killAgent } from "../../src/pit/death/kill.ts";
import { pitLockFile } from "../../src/pit/paths.ts";
import { type AgentSpec, beginLife, createRecord, type MissionRecord } from "../../src/pit/record/record.ts";
import { writeRecord } from "../../src/pit/record/store.ts";
import { startMission } from "../../src/pit/start-mission.ts";
import { stopMission } from "../../src/pit/stop.ts";
import { openPit } from "../../src/pit/supervise/daemon.ts";
import { tryAcquireLock } from "../../src/platform/lock.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { posixSupport } from "../../src/platform/posix.ts";
import { startTestServer, type TestServer } from "../http/test-server.ts";

let server: TestServer;
let mission: MissionId;
let spec: AgentSpec;
beforeEach(async () => {
  server = await startTestServer();
  mission = parseMissionId("m1");
  spec = {
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
afterEach(() => server[Symbol.asyncDispose]());

/** Records a first life without starting it. */
function recordLife(): MissionRecord {
  const { config, machine } = server.pitContext;
  const life = {
    epoch: 1,
    started_ms: 1,
    how: "start",
    command: ["sleep"],
    oom_kills: null,
    log_bytes: 0,
  } as const;
  const record = beginLife(createRecord(undefined, spec, 1), life);
  writeRecord(machine, config, record);
  return record;
}

/** Locks a file as a process that tests the lock (shared) or holds it (exclusive) does. */
function hold(path: string, how: "exclusive" | "shared"): Disposable {
  const support = posixSupport();
  if (!support.ok) throw new Error(support.reason);
  mkdirSync(dirname(path), { recursive: true });
  const fd = openSync(path, "a+");
  expect(support.posix.tryLock(fd, how)).toBe(true);
  return { [Symbol.dispose]: () => closeSync(fd) };
}

describe("killing an agent", () => {
  it("does not report SIGKILL when the agent exited in time and its keeper is slow", async () => {
    const record = recordLife();
    const keeper = tryAcquireLock(
      systemMachine,
      agentPaths(server.config, mission).lifeLock,
      "a slow keeper",
    )!;
    const ending = killAgent(server.pitContext, record, 0);
    keeper[Symbol.dispose]();
    expect(await ending).toBe(false);
  });
});

describe("starting an agent", () => {
  it("waits for a process that only tests the lock", async () => {
    const tester = hold(agentPaths(server.config, mission).lifeLock, "shared");
    const starting = startMission(server.pitContext, spec);
    // Longer than it waits for a keeper.
    await new Promise((resolve) => setTimeout(resolve, 500));
    tester[Symbol.dispose]();
    expect(await starting).toMatchObject({ epoch: 1, life: { epoch: 1 } });
    await stopMission(server.pitContext, mission, { checkpoint: false, graceSeconds: 0 });
  });
});

describe("opening a pit", () => {
  it("waits for a process that only tests the lock", async () => {
    const tester = hold(pitLockFile(server.config.run_dir), "shared");
    const opening = openPit(server.pitContext);
    tester[Symbol.dispose]();
    using pit = await opening;
    expect(pit.watching).toBe(0);
  });

  it("names the running pit, even if that has not written its name yet", async () => {
    const path = pitLockFile(server.config.run_dir);
    using _other = hold(path, "exclusive");
    const refused = openPit(server.pitContext);
    writeFileSync(path, JSON.stringify({ pid: process.pid, host: hostname(), purpose: "pit", since: 1 }));
    await expect(refused).rejects.toThrow(`process ${process.pid}`);
  });
});
