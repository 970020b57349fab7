// Hostile agents: what they do to their keeper, their files and themselves. No process is left behind, nothing grows without
// bound, and the user's commands still work.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, findProcessesOf, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const configure = (document: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify(document));
const agents = (file = "") => join(world.home, "run", "agents", "m1", file);
const logs = (file = "") => join(world.missions, "m1", "logs", file);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const beat = () =>
  JSON.parse(readFileSync(join(world.missions, "m1", "state", "heartbeat.json"), "utf8")).timestamp;

describe("an agent's environment", () => {
  it("is its own: variables, PATH and umask are not the keeper's", () => {
    const names = ["log", "dir", "n", "status", "PATH"];
    const given = names.flatMap((name) => ["--env", `${name}=/mine/${name}`]);
    const script = `${names.map((name) => `echo ${name}=$${name}`).join("; ")}; umask`;
    const { exit, stdout } = world.run(["run", "m1", ...given, "--", "/bin/sh", "-c", script]);
    const umask = process.umask().toString(8).padStart(4, "0");
    expect({ exit, stdout }).toEqual({
      exit: 0,
      stdout: `${names.map((name) => `${name}=/mine/${name}\n`).join("")}${umask}\n`,
    });
    expect(world.record("m1").end).toMatchObject({ kind: "departure", exit_code: 0 });
  });

  it("contains what heartbeats over HTTP need", async () => {
    await world.openPit();
    await world.until("the API", () => existsSync(join(world.home, "run", "pit.sock")));
    const beat = `
      const body = JSON.stringify({ epoch: Number(process.env.LAZARUS_EPOCH), status: "over HTTP", durable: true });
      require("node:http").request(process.env.LAZARUS_HEARTBEAT_URL,
        { socketPath: process.env.LAZARUS_SOCKET, method: "POST", agent: false },
        (answer) => console.log(answer.statusCode)).end(body);`;
    const { stdout } = world.run(["run", "m1", "--", process.execPath, "-e", beat]);
    expect(stdout).toBe("202\n");
    expect(readFileSync(join(world.missions, "m1", "state", "heartbeat.json"), "utf8")).toContain(
      "over HTTP",
    );
  });
});

describe("shell metacharacters", () => {
  it("in home, command and arguments have no effect, even in a revival", async () => {
    const home = join(world.directory, "a b $HOME `id` 'q' \"d\" % * \\ \u00e9");
    const env = { LAZARUS_HOME: home };
    const words = ["", "a b", "$HOME", "`id`", "*", "'\"", "two\nlines", "-n", "\\", "{epoch}"];
    const script = 'printf "<%s>" "$@"; printf "%s\\n" "$LAZARUS_CELL"; exec sleep 600';
    const log = join(home, "missions", "m1", "logs", "agent.log");
    const once = `${words.map((word) => `<${word}>`).join("")}${join(home, "missions", "m1")}\n`;
    expect(world.run(["run", "m1", "-d", "--", "sh", "-c", script, "sh", ...words], { env }).exit).toBe(0);
    await world.until("its arguments", () => readFileSync(log, "utf8") === once);
    const life = JSON.parse(readFileSync(join(home, "run", "agents", "m1", "life.json"), "utf8"));
    process.kill(life.agent.pid, "SIGKILL");
    await world.until("its end", () => world.run(["status"], { env }).stdout.includes("ending"));
    expect(world.run(["revive", "m1"], { env }).exit).toBe(0);
    await world.until("the same again", () => readFileSync(log, "utf8") === once + once);
    expect(world.run(["stop", "m1", "--grace", "0"], { env }).exit).toBe(0);
    expect(findProcessesOf(home)).toEqual([]);
  });
});

describe.each([
  [0, "departure", 0, null],
  [1, "crash", 1, null],
  [125, "crash", 125, null],
  [128, "crash", 128, null],
  [137, "crash", null, "SIGKILL"],
  [159, "crash", null, "SIGSYS"],
  [200, "crash", 200, null],
  [255, "crash", 255, null],
])("exit %i", (code, kind, exitCode, signal) => {
  it(`is a ${kind} and becomes the caller's exit code`, () => {
    expect(world.run(["run", "m1", "--revive", "no", ...sh(`exit ${code}`)]).exit).toBe(code);
    expect(world.record("m1").end).toMatchObject({ kind, exit_code: exitCode, signal });
  });
});

describe("an agent that signals", () => {
  it("its whole process group keeps its heartbeat", async () => {
    configure({ heartbeat_interval_seconds: 1 });
    const script =
      "trap : TERM HUP USR1; for s in TERM HUP USR1; do kill -$s 0; done; echo hit; while :; do sleep 0.1; done";
    await world.call(["run", "m1", "-d", ...sh(script)]);
    await world.until("the signals", () => world.log("m1").includes("hit"));
    const then = Date.now() / 1000;
    await world.until("a later beat", () => beat() > then + 1);
  });

  it("its whole process group with SIGKILL kills its keeper, which is recorded", async () => {
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("sleep 600 & sleep 0.3; kill -9 0")]);
    await world.until("the question", () => world.state("m1") === "asking");
    expect(world.record("m1").end.evidence[0].kind).toBe("keeper-vanished");
    expect(world.processes()).toHaveLength(1);
  });

  it("itself with SIGSTOP is revived when a stall limit is set", async () => {
    configure({ pit: { backoff_seconds: [0], grace_seconds: 1 } });
    await world.openPit();
    const script = 'echo life $LAZARUS_EPOCH; [ "$LAZARUS_EPOCH" = 1 ] && kill -STOP $$; exec sleep 600';
    await world.call(["run", "m1", "-d", "--revive", "yes", "--stall", "1", ...sh(script)]);
    await world.until("life 2", () => world.log("m1").includes("life 2"));
    expect(world.record("m1").end.kind).toBe("stall");
  });

  it("itself with SIGSTOP can be stopped", async () => {
    await world.call(["run", "m1", "-d", ...sh("kill -STOP $$; exec sleep 600")]);
    const { agent } = world.life("m1");
    await world.until("the signal", () => world.processState(agent.pid) === "T");
    expect((await world.call(["stop", "m1", "--no-checkpoint"])).stderr).toMatch(/^m1 is stopped; saved as/);
  });

  it("its keeper with SIGSTOP can still be stopped", async () => {
    configure({ pit: { leftover_grace_seconds: 0.2 } });
    await world.call(["run", "m1", "-d", ...sh("kill -STOP $PPID; exec sleep 600")]);
    const { keeper } = world.life("m1");
    await world.until("the signal", () => world.processState(keeper.pid) === "T");
    const stop = await world.call(["stop", "m1", "--no-checkpoint", "--grace", "0.2"]);
    expect(stop.stderr).toMatch(/^m1 is stopped; saved as/);
    expect(world.processes()).toEqual([]);
    expect(world.state("m1")).toBe("stopped");
    expect(world.record("m1").end).toMatchObject({ signal: "SIGTERM" });
  });
});

describe("an agent that daemonizes", () => {
  it("is paused and continued with all its processes", async () => {
    const daemon = "setsid sh -c 'while :; do echo tick; sleep 0.05; done' &";
    await world.call(["run", "m1", "-d", ...sh(`(${daemon}); exec sleep 600`)]);
    await world.until("ticks", () => world.log("m1").length > 20);
    world.run(["pause", "m1"]);
    const { size } = statSync(logs("agent.log"));
    await sleep(400);
    expect(statSync(logs("agent.log")).size).toBe(size);
    await world.call(["revive", "m1"]);
    await world.until("more ticks", () => statSync(logs("agent.log")).size > size);
    world.run(["pause", "m1"]);
    await world.call(["stop", "m1", "--no-checkpoint"]);
    expect(world.processes()).toEqual([]);
  });
});

describe("the log", () => {
  const LIMIT = 100_000;
  beforeEach(() =>
    configure({ pit: { log_limit_bytes: LIMIT, log_count: 2 }, heartbeat_interval_seconds: 1 }),
  );
  /** One write, so that no check sees half of it. */
  const flood = () => `dd if=${world.write("flood", "x".repeat(250_000))} bs=250000 count=1 2>/dev/null`;

  it("is rotated once after a flood that ends", async () => {
    await world.call(["run", "m1", "-d", ...sh(`${flood()}; exec sleep 600`)]);
    await world.until("the rotation", () => statSync(logs("agent.log.1")).size === LIMIT);
    // The log is checked before each heartbeat.
    for (let checks = 0; checks < 3; checks += 1) {
      const last = beat();
      await world.until("another heartbeat", () => beat() > last);
    }
    expect(existsSync(logs("agent.log.2"))).toBe(false);
    expect(statSync(logs("agent.log.1")).size).toBe(LIMIT);
  });

  it("is bounded even after the agent deleted it", async () => {
    await world.call(["run", "m1", "-d", ...sh(`rm ${logs("agent.log")}; ${flood()}; exec sleep 600`)]);
    const open = `/proc/${world.life("m1").agent.pid}/fd/1`;
    await world.until("the flood", () => statSync(logs("agent.log.1")).size === LIMIT);
    await world.until("its end", () => statSync(open).size === 0);
  });

  it("does not block the agent when it is a FIFO, a directory or cannot be created", async () => {
    await world.call(["init", "m1"]);
    for (const obstruct of [
      () => world.shell(`mkfifo ${logs("agent.log")}`),
      () => mkdirSync(logs("agent.log")),
      () => writeFileSync(logs().replace(/\/$/, ""), "no directory"),
    ]) {
      rmSync(logs(), { recursive: true, force: true });
      if (!String(obstruct).includes("no directory")) mkdirSync(logs());
      obstruct();
      const run = await world.call(["run", "m1", "-d", ...sh("echo lost; echo done > file; exit 4")]);
      if (run.exit === 0) {
        await world.until("its end", () => world.processes().length === 0);
        expect(JSON.parse(readFileSync(agents("exit.json"), "utf8")).status).toBe(4);
        rmSync(agents("exit.json"));
      } else expect(run.stderr).toContain("logs");
    }
  });
});

describe("deleted directories", () => {
  it("a worktree: nothing is started until a restore brings it back", async () => {
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("echo work > file; exec sleep 600")]);
    await world.until("its work", () => existsSync(join(world.missions, "m1", "worktree", "file")));
    await world.call(["checkpoint", "m1"]);
    rmSync(join(world.missions, "m1", "worktree"), { recursive: true });
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("the question", () => world.state("m1") === "asking");
    expect((await world.call(["why", "m1"])).stdout).toMatch(
      /its working directory \S+worktree does not exist; lazarus restore/,
    );
    const epoch = readFileSync(agents("epoch"), "utf8");
    const revive = await world.call(["revive", "m1"]);
    expect(revive.exit).toBe(9);
    expect(revive.stderr).toContain("try: lazarus restore m1");
    expect(readFileSync(agents("epoch"), "utf8")).toBe(epoch);
    expect((await world.call(["restore", "m1", world.checkpoints("m1")[0]!.checkpoint_id])).exit).toBe(0);
    expect((await world.call(["revive", "m1"])).exit).toBe(0);
    expect(world.state("m1")).toBe("running");
  });

  it("the agent's record, locks included: no second agent starts, and stop works", async () => {
    const script = `rm -rf ${agents().replace(/\/$/, "")}; echo gone; exec sleep 600`;
    await world.call(["run", "m1", "-d", ...sh(script)]);
    await world.until("the deletion", () => world.log("m1") === "gone\n");
    const second = await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    expect(second.exit).toBe(10);
    expect(second.stderr).toContain("lazarus stop m1");
    expect((await world.call(["stop", "m1", "--no-checkpoint"])).exit).toBe(0);
    expect(world.processes()).toEqual([]);
    expect(world.run(["run", "m1", ...sh("exit 0")]).exit).toBe(0);
  });

  it("a file given as --cwd is refused before anything is created", () => {
    const run = world.run(["run", "m1", "--cwd", process.execPath, ...sh("true")]);
    expect(run.exit).toBe(6);
    expect(existsSync(agents())).toBe(false);
  });
});

describe("temporary files", () => {
  it("of killed keepers are deleted by the next life", async () => {
    configure({ pit: { backoff_seconds: [0], max_revivals_per_hour: 100, alike_crashes_per_step: 100 } });
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
    for (let epoch = 1; epoch <= 4; epoch += 1) {
      process.kill(world.life("m1").keeper.pid, "SIGKILL");
      await world.until("the next life", () => world.life("m1").epoch === epoch + 1);
    }
    await world.until(
      "a single temporary file",
      () => readdirSync(agents()).filter((name) => name.startsWith(".")).length === 1,
    );
  });
});

describe("invalid options", () => {
  it.each([
    [["--stall", "0", ...sh("true")], "--stall needs a number of seconds above 0"],
    [["--revive", "substitute", "--substitute", "  ", ...sh("true")], "--substitute COMMAND"],
    [["--env", "1x=2", ...sh("true")], "invalid variable name"],
    [["--env", "NOT_SET_ANYWHERE", ...sh("true")], "NOT_SET_ANYWHERE: the variable is not set"],
  ])("run %j is a usage error and creates nothing", (args, message) => {
    const { exit, stderr } = world.run(["run", "m1", ...args]);
    expect(exit).toBe(2);
    expect(stderr).toContain(message);
    expect(existsSync(agents())).toBe(false);
  });
});
