// Agents from the command line, without a pit.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];

describe("an agent in the foreground", () => {
  it("uses the caller's output, and its exit code becomes the caller's", () => {
    const { exit, stdout, stderr } = world.run(["run", "m1", ...sh("echo hello; echo oh >&2; exit 3")]);
    expect({ exit, stdout }).toEqual({ exit: 3, stdout: "hello\n" });
    expect(stderr).toMatch(
      /^keeping \d+ environment variables .*\noh\nm1: exited with code 3; crash checkpoint \S+\n {2}needs your approval: /,
    );
  });

  it("reads the caller's input and receives its signals", async () => {
    const script = "trap 'echo asked; exit 9' TERM; read line; echo got $line; while :; do sleep 0.1; done";
    const child = spawn(process.execPath, [LAUNCHER, "run", "m1", ...sh(script)], {
      cwd: world.cwd,
      env: world.env,
    });
    let out = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    child.stdin.write("a word\n");
    await world.until("its answer", () => out.includes("got a word"));
    child.kill("SIGTERM");
    // Not `exit`, which may come before the end of the output.
    const exit = await new Promise((resolve) => child.once("close", (code) => resolve(code)));
    expect({ exit, out }).toEqual({ exit: 9, out: "got a word\nasked\n" });
    expect(world.state("m1")).toBe("stopped");
  });

  it("has its mission, epoch and cell in its environment", () => {
    const { stdout } = world.run([
      "run",
      "m1",
      ...sh("echo $LAZARUS_MISSION $LAZARUS_EPOCH; pwd; echo $LAZARUS_CELL $LAZARUS_HEARTBEAT"),
    ]);
    const cell = join(world.missions, "m1");
    expect(stdout).toBe(`m1 1\n${cell}/worktree\n${cell} ${cell}/state/heartbeat.json\n`);
  });

  it("exits with 128 + n when killed by signal n", () => {
    expect(world.run(["run", "m1", ...sh("kill -9 $$")]).exit).toBe(137);
  });

  it("is finished after exit code 0, with a checkpoint", () => {
    expect(world.run(["run", "m1", ...sh("echo done > file")]).exit).toBe(0);
    expect(world.state("m1")).toBe("finished");
    expect(world.checkpoints("m1").map(({ reason }) => reason)).toEqual(["baseline", "departure"]);
  });
});

describe("a detached agent", () => {
  it("prints to its log and stays stopped after a stop", async () => {
    expect((await world.call(["run", "m1", "-d", ...sh("echo begun; exec sleep 600")])).exit).toBe(0);
    await world.until("its output", () => world.log("m1") === "begun\n");
    expect((await world.call(["logs", "m1"])).stdout).toBe("begun\n");
    expect(world.state("m1")).toBe("running");
    const stop = await world.call(["stop", "m1"]);
    expect(stop.stderr).toMatch(/^m1 is stopped; saved as /);
    expect(world.state("m1")).toBe("stopped");
    expect((await world.call(["stop", "m1"])).stderr).toMatch(/^m1 was not running; it will not be revived/);
    expect(world.processes()).toEqual([]);
  });

  it("has default signal handlers and no descriptors of the keeper", async () => {
    await world.call(["run", "m1", "-d", ...sh("grep SigIgn /proc/self/status; ls -l /proc/self/fd; cat")]);
    await world.until("its end", () => world.state("m1") === "ending");
    expect(world.log("m1")).toContain("SigIgn:\t0000000000000000\n");
    expect(world.log("m1")).not.toContain("life.lock");
    expect(world.log("m1").match(/agent\.log/g)).toHaveLength(2);
  });

  it("cannot be started twice", async () => {
    await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    const second = await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    expect(second.exit).toBe(10);
    expect(second.stderr).toMatch(/an agent of m1 is already running \(process \d+\)/);
  });

  it("continues after a pause and is revived after a rest", async () => {
    await world.call(["run", "m1", "-d", ...sh("while :; do echo tick; sleep 0.05; done")]);
    await world.until("ticks", () => world.log("m1").length > 20);
    world.run(["pause", "m1"]);
    expect(world.state("m1")).toBe("paused");
    const { size } = statSync(join(world.missions, "m1", "logs", "agent.log"));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(statSync(join(world.missions, "m1", "logs", "agent.log")).size).toBe(size);
    expect((await world.call(["revive", "m1"])).stderr).toMatch(/m1 continues/);
    await world.until("more ticks", () => world.log("m1").length > size);
    world.run(["rest", "m1"]);
    expect(world.state("m1")).toBe("resting");
    expect((await world.call(["revive", "m1"])).stderr).toMatch(/is running again as life 2/);
    expect(world.state("m1")).toBe("running");
  });

  it("can be stopped while paused", async () => {
    await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    world.run(["pause", "m1"]);
    expect((await world.call(["stop", "m1", "--no-checkpoint"])).exit).toBe(0);
    expect(world.processes()).toEqual([]);
  });

  it("is killed after the grace period when it ignores SIGTERM", async () => {
    await world.call(["run", "m1", "-d", ...sh("trap '' TERM; echo ready; while :; do sleep 0.1; done")]);
    await world.until("the trap", () => world.log("m1") === "ready\n");
    const stop = await world.call(["stop", "m1", "--grace", "0.3"]);
    expect(stop.stderr).toMatch(/SIGKILL was needed/);
    expect(world.processes()).toEqual([]);
  });

  it("leaves no process behind after daemonizing and forking hundreds", async () => {
    const script =
      "for i in $(seq 300); do sleep 600 & done; setsid sh -c 'setsid sleep 600 & sleep 600' & exit 0";
    await world.call(["run", "m1", "-d", ...sh(script)]);
    await world.until("the end of all processes", () => world.processes().length === 0);
    expect(
      JSON.parse(readFileSync(join(world.home, "run", "agents", "m1", "exit.json"), "utf8")).leftovers,
    ).toBeGreaterThan(299);
  });

  it("is fenced: an earlier life cannot send heartbeats", async () => {
    await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    await world.call(["stop", "m1", "--no-checkpoint"]);
    await world.call(["revive", "m1"]);
    const old = { LAZARUS_MISSION: "m1", LAZARUS_EPOCH: "1" };
    expect(world.run(["heartbeat", "m1"], { env: old }).exit).toBe(7);
    expect(world.run(["heartbeat", "m1"], { env: { ...old, LAZARUS_EPOCH: "2" } }).exit).toBe(0);
  });

  it("cannot grow its log beyond the limit", async () => {
    writeFileSync(
      join(world.home, "config.json"),
      JSON.stringify({ pit: { log_limit_bytes: 100_000, log_count: 2 }, heartbeat_interval_seconds: 1 }),
    );
    await world.call([
      "run",
      "m1",
      "-d",
      ...sh("while :; do head -c 20000 /dev/zero | tr '\\0' x; echo; sleep 0.02; done"),
    ]);
    const logs = join(world.missions, "m1", "logs");
    // agent.log.1 is missing for a moment between its rename and the next copy.
    await world.until("a second rotation", () =>
      ["agent.log.1", "agent.log.2"].every((name) => existsSync(join(logs, name))),
    );
    // The size between two checks depends on timing; once the agent is paused, nothing exceeds the limit.
    world.run(["pause", "m1"]);
    const names = () => readdirSync(logs).filter((name) => name.startsWith("agent.log"));
    await world.until("bounds", () => names().every((name) => statSync(join(logs, name)).size <= 100_000));
    expect(names().sort()).toEqual(["agent.log", "agent.log.1", "agent.log.2"]);
  });

  it("has a heartbeat from its keeper, which keeps other fields", async () => {
    writeFileSync(join(world.home, "config.json"), JSON.stringify({ heartbeat_interval_seconds: 1 }));
    await world.call(["init", "m1"]);
    const file = join(world.missions, "m1", "state", "heartbeat.json");
    writeFileSync(
      file,
      JSON.stringify(
        { mission_id: "m1", timestamp: 1_700_000_000.25, status: "bootstrapped", mine: [1, 2] },
        null,
        2,
      ),
    );
    await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    const beat = () => JSON.parse(readFileSync(file, "utf8"));
    await world.until("a beat", () => beat().timestamp > 1_700_000_001);
    const first = beat();
    expect(first).toMatchObject({ mission_id: "m1", status: "running", mine: [1, 2] });
    const keeperBeat = join(world.home, "run", "agents", "m1", "beat");
    await world.until("its note", () => Number(readFileSync(keeperBeat, "utf8")) === beat().timestamp);
    await world.until("another", () => beat().timestamp > first.timestamp);
  });

  it("whose cell was deleted needs approval and a restore", async () => {
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("echo work > file; exec sleep 600")]);
    await world.until("its work", () => existsSync(join(world.missions, "m1", "worktree", "file")));
    await world.call(["checkpoint", "m1"]);
    rmSync(join(world.missions, "m1"), { recursive: true });
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("its end", () => world.processes().length === 0);
    expect((await world.call(["revive", "m1"])).exit).toBe(6);
    expect((await world.call(["status"])).stdout).toContain("the cell is missing");
    expect((await world.call(["restore", "m1"])).exit).toBe(0);
    expect((await world.call(["revive", "m1"])).exit).toBe(0);
    expect(world.state("m1")).toBe("running");
  });
});

describe("agent commands", () => {
  it("report what is missing", async () => {
    await world.call(["init", "m1"]);
    expect(world.show("stop m1")).toContain(
      "error: m1 has never had an agent\n  try: lazarus run m1 -- COMMAND",
    );
    expect(world.show("why nobody")).toContain("there is no mission nobody");
    expect(world.show("run m1")).toContain("missing command: lazarus run m1 -- COMMAND");
    expect(world.show("run m1 --revive substitute -- true")).toContain("--substitute COMMAND");
  });

  it("fit into 80 columns", async () => {
    const long = `mission-${"x".repeat(90)}`;
    world.run(["run", long, ...sh("exit 1")]);
    for (const line of (await world.call(["status"])).stdout.split("\n"))
      expect(line.length).toBeLessThanOrEqual(80);
  });

  it("explain an end that is not handled yet, without changing anything", async () => {
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("echo cannot connect; exit 3")]);
    await world.until("its end", () => world.state("m1") === "ending");
    const before = readFileSync(join(world.home, "run", "agents", "m1", "record.json"), "utf8");
    const why = (await world.call(["why", "m1"])).stdout;
    expect(why).toContain("m1 exited with code 3.\n");
    expect(why).toContain("not handled yet");
    expect(why).toContain("  | cannot connect\n");
    const dry = await world.call(["revive", "m1", "--dry-run"]);
    expect(dry.exit).toBe(0);
    expect(dry.stderr).toContain("m1: exited with code 3\nthe pit would decide: revive: no backoff");
    expect(readFileSync(join(world.home, "run", "agents", "m1", "record.json"), "utf8")).toBe(before);
    expect(world.checkpoints("m1").map(({ reason }) => reason)).toEqual(["baseline"]);
  });

  it("preview the policy's decision", async () => {
    world.run(["run", "m1", "--revive", "yes", ...sh("exit 78")]);
    const { stderr } = await world.call(["revive", "m1", "--dry-run"]);
    expect(stderr).toContain(
      "the pit would decide: tombstone, no more revivals: exit code 78 is configured as permanent",
    );
    expect(world.state("m1")).toBe("tombstone");
  });
});
