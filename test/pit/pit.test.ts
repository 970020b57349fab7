// The pit in its own process, and how it handles every kind of end.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { listCheckpoints } from "../../src/registry/checkpoints.ts";
import { openRegistry } from "../../src/registry/registry.ts";
import { createPitWorld, killIfRunning, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const configure = (pit: object, more: object = {}) =>
  writeFileSync(
    join(world.home, "config.json"),
    JSON.stringify({ pit: { backoff_seconds: [0], ...pit }, ...more }),
  );
const kinds = (mission: string) =>
  world
    .run(["events", mission, "--json", "-n", "0"])
    .stdout.trim()
    .split("\n")
    .map((line) => JSON.parse(line).kind);
/** Events are recorded after the record is written. */
const waitForEvent = (mission: string, kind: string) =>
  world.until(`the event ${kind}`, () => kinds(mission).includes(kind));
const inLife = (mission: string, epoch: number) => () =>
  world.life(mission).epoch === epoch && world.record(mission).life.epoch === epoch;
const epochOf = (pid: number) => {
  try {
    return /LAZARUS_EPOCH=(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, "latin1"))?.[1];
  } catch {
    // Ended in the meantime.
    return undefined;
  }
};

describe("the pit", () => {
  it("revives an agent after SIGKILL, with a crash checkpoint and a resume note", async () => {
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      ...sh("echo work >> file; echo life $LAZARUS_EPOCH; exec sleep 600"),
    ]);
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("life 2", inLife("m1", 2));
    await world.until("its output", () => world.log("m1").includes("life 2"));
    await waitForEvent("m1", "revival");
    expect(kinds("m1")).toEqual(["init", "checkpoint", "start", "death", "checkpoint", "revival"]);
    expect(world.checkpoints("m1").map(({ reason }) => reason)).toEqual(["baseline", "crash"]);
    const resume = JSON.parse(readFileSync(join(world.missions, "m1", "state", "resume.json"), "utf8"));
    expect(resume).toMatchObject({
      mission_id: "m1",
      epoch: 2,
      died: { kind: "crash", signal: "SIGKILL", why: "killed by SIGKILL" },
      scene_checkpoint: world.checkpoints("m1")[1]!.checkpoint_id,
      stepped_back_to: null,
    });
    expect(readFileSync(join(world.missions, "m1", "artifacts", "handoff.md"), "utf8")).toContain(
      "You are life 2",
    );
  });

  it("is refused while another one runs", async () => {
    const pit = await world.openPit();
    const second = world.run(["pit"]);
    expect(second.exit).toBe(10);
    expect(second.stderr).toContain(`process ${pit.pid}`);
  });

  it("leaves its agents running when killed, and the next one adopts them", async () => {
    const pit = await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
    const { agent } = world.life("m1");
    pit.kill("SIGKILL");
    await world.until("the pit's end", () => pit.signalCode !== null);
    expect(world.state("m1")).toBe("running");
    await world.openPit();
    expect(world.life("m1").agent.pid).toBe(agent.pid);
    process.kill(agent.pid, "SIGKILL");
    await world.until("life 2", inLife("m1", 2));
  });

  it("handles what happened while no pit was running", async () => {
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("its end", () => existsSync(join(world.home, "run", "agents", "m1", "exit.json")));
    await world.openPit();
    await world.until("life 2", inLife("m1", 2));
  });

  it("kills the orphans of a killed keeper before it starts the next life", async () => {
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      ...sh("trap '' TERM; setsid sleep 600 & while :; do sleep 0.1; done"),
    ]);
    const { keeper, agent } = world.life("m1");
    process.kill(keeper.pid, "SIGKILL");
    await world.until("life 2", inLife("m1", 2));
    expect(world.processes()).not.toContain(agent.pid);
    expect(world.record("m1").end.evidence.map(({ kind }: { kind: string }) => kind)).toContain(
      "keeper-vanished",
    );
    const epochs = () => new Set(world.processes().map(epochOf));
    // It writes life.json before it execs its command.
    await world.until("its command", () => epochs().has("2"));
    expect(epochs()).not.toContain("1");
  });

  it("takes checkpoints on schedule and at shutdown, and sends its own heartbeat", async () => {
    configure({ checkpoint_every_seconds: 0.5 }, { heartbeat_interval_seconds: 1 });
    const pit = await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("while :; do date +%N > file; sleep 0.1; done")]);
    await world.until("a scheduled one", () =>
      world.checkpoints("m1").some(({ reason }) => reason === "scheduled"),
    );
    await world.until("a heartbeat", () => world.run(["job", "check", "lazarus_pit"]).exit === 0);
    pit.kill("SIGTERM");
    await world.until("its end", () => pit.exitCode === 0);
    expect(world.checkpoints("m1").at(-1)!.reason).toBe("shutdown");
    expect(world.state("m1")).toBe("running");
  });
});

describe("on the end of an agent, the pit", () => {
  const ended = (state: string) => () => world.state("m1") === state;

  it("asks by default", async () => {
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exit 1")]);
    await world.until("the question", ended("asking"));
    await waitForEvent("m1", "alert");
  });

  it("respects a stop, even after its own restart", async () => {
    const pit = await world.openPit();
    for (const mission of ["m1", "m2"])
      await world.call(["run", mission, "-d", "--revive", "yes", ...sh("exec sleep 600")]);
    await world.call(["stop", "m1"]);
    pit.kill("SIGKILL");
    await world.until("the pit's end", () => pit.signalCode !== null);
    process.kill(world.life("m2").agent.pid, "SIGKILL");
    await world.openPit();
    // The pit handles m1 before m2, and again every few seconds.
    await world.until("the revival of m2", inLife("m2", 2));
    expect(world.state("m1")).toBe("stopped");
    expect(world.life("m1").epoch).toBe(1);
    expect(kinds("m1")).not.toContain("revival");
  });

  it("never retries exit code 78", async () => {
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exit 78")]);
    await world.until("the tombstone", ended("tombstone"));
    await waitForEvent("m1", "tombstone");
  });

  it("waits until a quota resets", async () => {
    configure({ quota_patterns: ["^usage limit reached"] });
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      ...sh("echo 'usage limit reached, try again in 2 hours'; exit 1"),
    ]);
    await world.until("the wait", ended("waiting"));
    expect(world.record("m1").decision.at_ms - world.record("m1").end.noticed_ms).toBe(7_200_000);
    expect((await world.call(["status", "m1"])).stdout).toMatch(/revive in (1 h 59 min|2 h)/);
  });

  it("starts a substitute", async () => {
    await world.openPit();
    const substitute = [
      "--revive",
      "substitute",
      "--substitute",
      "sh -c 'echo other {epoch}; exec sleep 600'",
    ];
    await world.call(["run", "m1", "-d", ...substitute, ...sh("exit 1")]);
    await world.until("the substitute", () => world.log("m1").includes("other 2"));
  });

  it("steps back to an older checkpoint when the same crash repeats, after a checkpoint of the failed state", async () => {
    configure({ max_revivals_per_hour: 20, alike_crashes_per_step: 2, step_back_after_seconds: 0 });
    const file = join(world.missions, "m1", "worktree", "state");
    await world.call(["init", "m1"]);
    writeFileSync(file, "good\n");
    await world.call(["checkpoint", "m1"]);
    writeFileSync(file, "poison\n");
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      "--no-baseline",
      ...sh("grep -q good state && exec sleep 600; echo cannot; exit 1"),
    ]);
    await world.until(
      "a life that lasts",
      () => world.record("m1").steps_back === 1 && world.state("m1") === "running",
    );
    await world.until("the older file", () => readFileSync(file, "utf8") === "good\n");
    const resume = JSON.parse(readFileSync(join(world.missions, "m1", "state", "resume.json"), "utf8"));
    expect(resume.stepped_back_to).toBe(world.checkpoints("m1")[0]!.checkpoint_id);
    expect(resume.changed_on_disk.paths).toContain("changed: worktree/state");
    using registry = openRegistry(systemMachine, join(world.home, "registry.db"));
    const restore = registry.events({ mission: "m1" }).find(({ kind }) => kind === "restore");
    const safety = world.checkpoints("m1").find(({ reason }) => reason === "pre-restore")!.checkpoint_id;
    expect(restore?.data).toMatchObject({ by: "pit", safety, flaws: 0 });
    expect(listCheckpoints(registry, { mission: "m1" }).map(({ id }) => id)).toContain(safety);
  });

  it("ends in a tombstone at the revival limit", async () => {
    configure({ max_revivals_per_hour: 2, alike_crashes_per_step: 99 });
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exit 1")]);
    await world.until("the tombstone", ended("tombstone"));
    expect(world.record("m1").revivals_ms).toHaveLength(2);
    expect((await world.call(["why", "m1"])).stdout).toContain(
      "tombstone, no more revivals: 2 revivals within an hour",
    );
  });

  it("kills a stalled agent and revives it", async () => {
    configure({ grace_seconds: 1 });
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      "--stall",
      "1",
      ...sh("echo life $LAZARUS_EPOCH; exec sleep 600"),
    ]);
    // The next life stalls as well.
    await world.until("life 2", () => world.log("m1").includes("life 2"));
    expect(world.record("m1").end).toMatchObject({ kind: "stall" });
    expect(kinds("m1")).toContain("stall");
  });

  it("kills an agent that prints but makes no progress, when a limit is set", async () => {
    configure({ grace_seconds: 1, progress_seconds: 1 });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("while :; do echo busy; sleep 0.1; done")]);
    await world.until("the question", ended("asking"));
    expect((await world.call(["why", "m1"])).stdout).toMatch(
      /killed: stalled, no flow or run progress for \d+ s \(limit 1 s\)/,
    );
  });

  it("recognizes a reboot", async () => {
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
    const { keeper } = world.life("m1");
    const life = join(world.home, "run", "agents", "m1", "life.json");
    killIfRunning(keeper.pid);
    for (const pid of world.processes()) killIfRunning(pid);
    writeFileSync(
      life,
      readFileSync(life, "utf8").replaceAll(/"bootId": "[^"]*"/g, '"bootId": "an-earlier-boot"'),
    );
    await world.openPit();
    await world.until("life 2", inLife("m1", 2));
    expect(world.record("m1").end.evidence[0].kind).toBe("reboot");
  });

  it("waits on a full disk until the checkpoint succeeds", async ({ skip }) => {
    const small = join(world.directory, "small");
    mkdirSync(small);
    const mount = spawnSync("mount", ["-t", "tmpfs", "-o", "size=3m", "none", small], { encoding: "utf8" });
    if (mount.status !== 0) skip(`cannot mount a tmpfs: ${mount.stderr?.trim() ?? mount.error}`);
    try {
      const env = { LAZARUS_HOME: small };
      world.run(["run", "m1", "-d", "--revive", "yes", ...sh("cat /dev/zero > fill; exit 1")], { env });
      await world.until("its end", () => world.run(["status"], { env }).stdout.includes("ending"));
      const { exit, stderr } = world.run(["revive", "m1"], { env });
      expect(exit).toBe(9);
      expect(stderr).toContain("disk is full");
      rmSync(join(small, "missions", "m1", "worktree", "fill"));
      expect(world.run(["revive", "m1"], { env }).exit).toBe(0);
      expect(readFileSync(join(small, "missions", "m1", "state", "resume.json"), "utf8")).toContain(
        '"exit_code": 1',
      );
      world.run(["stop", "m1", "--no-checkpoint", "--grace", "0"], { env });
    } finally {
      spawnSync("umount", ["-l", small]);
    }
  });
});
