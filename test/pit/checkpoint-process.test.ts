// Checkpoints in processes of their own: what they return and record, and what happens when one is killed. git is replaced by
// a script where a test has to act in the middle of a checkpoint.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
import { createSimulatedClock } from "../../src/testing/simulated-clock.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

const M1 = parseMissionId("m1");
let world: PitWorld;
let context: PitContext;
let warnings: string[];

beforeEach(() => {
  world = createPitWorld();
  world.run(["init", "m1"]);
  writeFileSync(join(world.missions, "m1/worktree/file"), "1\n");
  open(world.env.PATH!);
});
afterEach(async () => {
  context[Symbol.dispose]();
  await world.close();
});

function open(path: string, machine = systemMachine): void {
  const environment = { ...world.env, PATH: path };
  warnings = [];
  context = openPitContext({
    machine,
    effective: loadConfig({ env: environment, cwd: world.cwd, isRoot: false }),
    version: "test",
    environment,
    cwd: world.cwd,
    usesProcesses: true,
    log: () => {},
    warn: (line) => warnings.push(line),
  });
}

/** Makes the worktree look like a repository, and replaces git by a script. */
function replaceGit(script: string): void {
  mkdirSync(join(world.missions, "m1/worktree/.git/objects"), { recursive: true });
  mkdirSync(join(world.missions, "m1/worktree/.git/refs"));
  writeFileSync(join(world.missions, "m1/worktree/.git/HEAD"), "ref: refs/heads/main\n");
  const bin = join(world.directory, "other-bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "git"), `#!/bin/sh\necho $PPID > ${pidFile()}\n${script}\nexit 1\n`);
  chmodSync(join(bin, "git"), 0o755);
  context[Symbol.dispose]();
  open(`${bin}:${world.env.PATH}`);
}
/** Makes every process that is started run this script first. */
function preload(script: string): void {
  const file = join(world.directory, "preload.mjs");
  writeFileSync(file, script);
  const before = process.env.NODE_OPTIONS;
  onTestFinished(() => {
    if (before === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = before;
  });
  process.env.NODE_OPTIONS = `--import=${file}`;
}
/** The processes that this one has started. */
function children(): string[] {
  const lists = readdirSync("/proc/self/task").map((task) =>
    readFileSync(`/proc/self/task/${task}/children`, "utf8"),
  );
  return lists
    .join(" ")
    .split(" ")
    .filter((child) => child !== "");
}
const pidFile = () => join(world.directory, "pid");
const pid = () => Number(readFileSync(pidFile(), "utf8"));

it("returns the same result as in this process, and emits its events here", async () => {
  const seen: unknown[] = [];
  context.events.on("event", ({ kind, data }) => seen.push([kind, data.checkpoint]));
  const result = await context.takeCheckpoint(M1, { reason: "manual", message: "hello" });
  const { vault } = context.openMission(M1);
  expect(vault.list()).toEqual([result.ref]);
  expect(result).toMatchObject({ outcome: "captured", pruned: [], finished: undefined });
  expect(result.checkpoint.metadata).toMatchObject({ message: "hello", lazarus_version: "test" });
  using contents = openContents(vault, result.checkpoint.layers);
  expect(contents.listing.has("worktree/file")).toBe(true);
  expect(seen).toEqual([["checkpoint", result.ref.id]]);
  const recorded = context.registry()!.events({ last: 1 });
  expect(recorded.map(({ data }) => data.checkpoint)).toEqual([result.ref.id]);
  expect(warnings).toEqual([]);
});

it("uses one other process for several checkpoints, which ends with the context", async () => {
  replaceGit("");
  await context.takeCheckpoint(M1, { reason: "manual" });
  const first = pid();
  expect(first).not.toBe(process.pid);
  writeFileSync(join(world.missions, "m1/worktree/file"), "2\n");
  await context.takeCheckpoint(M1, { reason: "manual" });
  expect(pid()).toBe(first);
  context[Symbol.dispose]();
  await world.until("the end of the process", () => !existsSync(`/proc/${first}`));
});

it("throws the error of the process, with its code and hint", async () => {
  const failure = context.takeCheckpoint(parseMissionId("unknown"), { reason: "manual" });
  await expect(failure).rejects.toMatchObject({
    name: "LazarusError",
    code: "MISSION_UNKNOWN",
    hint: "lazarus init unknown",
  });
});

it("says that the process was killed, and the next checkpoint is taken by another one", async () => {
  replaceGit(`[ -e ${pidFile()}.killed ] || { : > ${pidFile()}.killed; kill -9 $PPID; }`);
  await expect(context.takeCheckpoint(M1, { reason: "manual" })).rejects.toMatchObject({
    code: "CHECKPOINT_FAILED",
    message: "the process that was taking a checkpoint of m1 was killed by SIGKILL",
    hint: expect.stringContaining("dmesg"),
  });
  expect(context.openMission(M1).vault.list()).toEqual([]);
  const { ref } = await context.takeCheckpoint(M1, { reason: "manual" });
  expect(context.openMission(M1).vault.list()).toEqual([ref]);
});

it.each([
  ["is missing", () => (process.execPath = join(world.directory, "nothing"))],
  // One variable may have 128 KiB: fork throws, as it does without memory.
  ["cannot be started", () => (process.env.LAZARUS_TEST_HUGE = "x".repeat(200_000))],
  ["ends before it is loaded", () => preload("process.exit(3);")],
  ["is another version after an upgrade in place", () => preload('process.argv[2] = "0.0.0";')],
])("takes the checkpoint itself where the program %s", async (_, prepare) => {
  const { execPath } = process;
  onTestFinished(() => {
    process.execPath = execPath;
    delete process.env.LAZARUS_TEST_HUGE;
  });
  prepare();
  replaceGit("");
  const { ref } = await context.takeCheckpoint(M1, { reason: "manual" });
  expect(context.openMission(M1).vault.list()).toEqual([ref]);
  expect(pid()).toBe(process.pid);
  expect(warnings).toEqual([expect.stringContaining("cannot start a process for a checkpoint")]);
});

it("starts no process without descriptors", () => {
  const pool = new URL("../../src/pit/checkpoint/process-pool.ts", import.meta.url).href;
  const script = `
    import { openSync } from "node:fs";
    import { CheckpointProcesses } from ${JSON.stringify(pool)};
    const clock = { sleep: () => Promise.resolve() };
    const processes = new CheckpointProcesses(clock, {});
    try { for (;;) openSync("/dev/null"); } catch {}
    const result = await processes.take({ mission: "m1" });
    process.exit(result === undefined ? 0 : 1);`;
  const file = join(world.directory, "full.mjs");
  writeFileSync(file, script);
  const { status, stderr } = spawnSync("sh", ["-c", 'ulimit -n 64; exec "$0" "$1"', process.execPath, file], {
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});

it("names the exit code of a process that ends in the middle of a checkpoint, and does not take it itself", async () => {
  preload('process.on("SIGUSR2", () => process.exit(3));');
  replaceGit(`[ $PPID = ${process.pid} ] || kill -USR2 $PPID`);
  await expect(context.takeCheckpoint(M1, { reason: "manual" })).rejects.toMatchObject({
    code: "CHECKPOINT_FAILED",
    message: "the process that was taking a checkpoint of m1 ended with exit code 3",
  });
  expect(pid()).not.toBe(process.pid);
  expect(context.openMission(M1).vault.list()).toEqual([]);
});

it("replaces a waiting process that was killed while its channel is still open", async () => {
  const sleeper = join(world.directory, "sleeper");
  // The child of the process has the other end of the channel.
  preload(`
    import { spawn } from "node:child_process";
    import { writeFileSync } from "node:fs";
    const { pid } = spawn("sleep", ["600"], { stdio: ["ignore", "ignore", "ignore", 3] });
    writeFileSync(${JSON.stringify(sleeper)}, String(pid));`);
  replaceGit("");
  await context.takeCheckpoint(M1, { reason: "manual" });
  const first = Number(readFileSync(sleeper, "utf8"));
  onTestFinished(() => void process.kill(first));
  delete process.env.NODE_OPTIONS;
  const killed = pid();
  process.kill(killed, "SIGKILL");
  await world.until("the end of the process", () => !existsSync(`/proc/${killed}`));
  writeFileSync(join(world.missions, "m1/worktree/file"), "2\n");
  await context.takeCheckpoint(M1, { reason: "manual" });
  expect(pid()).not.toBe(killed);
  expect(pid()).not.toBe(process.pid);
  expect(warnings).toEqual([]);
});

it("starts at most 8 processes, however long they take, and none when the pit ends", async () => {
  context[Symbol.dispose]();
  const clock = createSimulatedClock();
  open(world.env.PATH!, { ...systemMachine, clock });
  preload('process.once("disconnect", () => process.exit()); await new Promise(() => {});');
  const before = new Set(children());
  const count = () => children().filter((child) => !before.has(child)).length;
  const failures = Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      context.takeCheckpoint(parseMissionId(`u${i}`), { reason: "live" }).catch((error: unknown) => error),
    ),
  );
  await clock.advance(0);
  const started = count();
  await clock.advance(30_000);
  const late = count();
  await clock.advance(30_000);
  const last = count();
  context[Symbol.dispose]();
  expect([started, late, last]).toEqual([4, 8, 8]);
  const ended = { code: "CHECKPOINT_FAILED", hint: "run the same command again" };
  expect(await failures).toEqual(Array.from({ length: 10 }, () => expect.objectContaining(ended)));
});

it("takes checkpoints of several missions at the same time", async () => {
  const missions = ["m2", "m3", "m4", "m5", "m6"].map(parseMissionId);
  for (const mission of missions) world.run(["init", mission]);
  const taken = await Promise.all(
    missions.map((mission) => context.takeCheckpoint(mission, { reason: "live" })),
  );
  expect(taken.map(({ checkpoint }) => checkpoint.metadata.mission)).toEqual(missions);
});

it("takes a checkpoint of few changes in this process, and of many in another one", async () => {
  replaceGit("");
  const first = await context.takeCheckpoint(M1, { reason: "manual" });
  expect(pid()).not.toBe(process.pid);
  const changed = async (count: number) => {
    const names = Array.from({ length: count }, (_, i) => `worktree/${count}-${i}`);
    for (const name of names) writeFileSync(join(world.missions, "m1", name), name);
    const dirty = { paths: new Set(["worktree", ...names]), trees: new Set<string>() };
    const { ref, checkpoint } = await context.takeCheckpoint(M1, { reason: "manual", dirty });
    return { parent: ref.parent, id: ref.id, files: checkpoint.metadata.counts.changed };
  };
  const few = await changed(10);
  expect(pid()).toBe(process.pid);
  const many = await changed(200);
  expect(pid()).not.toBe(process.pid);
  const again = await changed(11);
  expect(pid()).toBe(process.pid);
  expect([few.parent, many.parent, again.parent]).toEqual([first.ref.id, few.id, many.id]);
  expect(many.files).toBeGreaterThanOrEqual(200);
  expect(again.files).toBeLessThan(20);
});
