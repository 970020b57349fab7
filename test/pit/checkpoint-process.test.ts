// Checkpoints in processes of their own: what they return and record, and what happens when one is killed. git is replaced by
// a script where a test has to act in the middle of a checkpoint.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
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

function open(path: string): void {
  const environment = { ...world.env, PATH: path };
  warnings = [];
  context = openPitContext({
    machine: systemMachine,
    effective: loadConfig({ env: environment, cwd: world.cwd, isRoot: false }),
    version: "test",
    environment,
    cwd: world.cwd,
    usesProcesses: true,
    log: () => {},
    warn: (line) => warnings.push(line),
  });
}

/** A repository whose git runs this script first. */
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
const pidFile = () => join(world.directory, "pid");
const pid = () => Number(readFileSync(pidFile(), "utf8"));

it("returns what this process would, and its events are emitted here", async () => {
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

it("is another process, which takes several checkpoints and ends with the context", async () => {
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
    code: "INTERRUPTED",
    message: "the process that was taking a checkpoint of m1 was killed by SIGKILL",
  });
  expect(context.openMission(M1).vault.list()).toEqual([]);
  const { ref } = await context.takeCheckpoint(M1, { reason: "manual" });
  expect(context.openMission(M1).vault.list()).toEqual([ref]);
});

it("takes the checkpoint itself where no process can be started", async () => {
  const { execPath } = process;
  process.execPath = join(world.directory, "nothing");
  onTestFinished(() => {
    process.execPath = execPath;
  });
  replaceGit("");
  const { ref } = await context.takeCheckpoint(M1, { reason: "manual" });
  expect(context.openMission(M1).vault.list()).toEqual([ref]);
  expect(pid()).toBe(process.pid);
  expect(warnings).toEqual([expect.stringContaining("cannot start a process for a checkpoint")]);
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
