// Agents in the foreground: Ctrl-C is the user's stop, a crash is revived in the same terminal, and a pit takes over when
// the terminal is gone. Attaching never affects the agent.
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { reviveMission } from "../../src/pit/actions.ts";
import { endedByRequest } from "../../src/pit/death/requested-end.ts";
import { openSignalRelay, waitForAgent } from "../../src/pit/foreground.ts";
import { startMission } from "../../src/pit/start-mission.ts";
import { stopMission } from "../../src/pit/stop.ts";
import { LAUNCHER } from "../cli/hermetic.ts";
import { startTestServer, type TestServer } from "../http/test-server.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

it("returns the status of the first life when a pit has already started the next one", async () => {
  const { pitContext } = server;
  const mission = parseMissionId("m1");
  const first = await startMission(pitContext, {
    mission,
    agent: "sh",
    command: ["sh", "-c", '[ "$LAZARUS_EPOCH" = 1 ] && exit 5; exec sleep 600'],
    cwd: null,
    env: {},
    revive: "yes",
    substitute: null,
    stall_seconds: null,
  });
  await first.ended;
  // In place of a pit.
  const next = await reviveMission(pitContext, mission);
  expect(next.outcome).toBe("started");
  try {
    using relay = openSignalRelay(pitContext.machine.clock);
    const end = await waitForAgent(pitContext, mission, first, relay);
    expect(end).toMatchObject({ status: 5, revivedAs: 2, record: undefined, problem: undefined });
  } finally {
    await stopMission(pitContext, mission, { checkpoint: false, graceSeconds: 0 });
  }
});

it("an end counts as requested from the signal itself, or within the grace period after it", () => {
  const request = { signal: "SIGINT", atMs: 10_000 } as const;
  const ended = (signal: string | null, endedMs: number) =>
    endedByRequest({ signal, endedMs }, request, 5000);
  expect(ended("SIGINT", 10_100)).toBe(true);
  expect(ended(null, 12_000)).toBe(true);
  expect(ended("SIGSEGV", 60_000)).toBe(false);
  expect(ended(null, 60_000)).toBe(false);
  expect(endedByRequest({ signal: "SIGINT", endedMs: 1 }, undefined, 5000)).toBe(false);
});

describe("from the command line", () => {
  let world: PitWorld;
  beforeEach(() => {
    world = createPitWorld();
  });
  afterEach(() => world.close());

  const sh = (script: string) => ["--", "sh", "-c", script];
  const configure = (pit: object) => writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit }));

  /** In its own process group, like a job of an interactive shell. */
  function open(...words: string[]) {
    const child: ChildProcess = spawn(process.execPath, [LAUNCHER, ...words], {
      cwd: world.cwd,
      env: world.env,
      detached: true,
    });
    const texts = { out: "", err: "" };
    child.stdout!.on("data", (chunk) => {
      texts.out += chunk;
    });
    child.stderr!.on("data", (chunk) => {
      texts.err += chunk;
    });
    // Not `exit`, which may come before the end of the output.
    const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
    /** To the whole group, as a terminal sends it. */
    const signal = (name: NodeJS.Signals) => process.kill(-child.pid!, name);
    return { child, texts, closed, signal };
  }

  it("Ctrl-C is a stop, and nothing is revived", async () => {
    configure({ backoff_seconds: [0] });
    await world.openPit();
    const { texts, closed, signal } = open(
      "run",
      "m1",
      "--revive",
      "yes",
      ...sh("echo begun; exec sleep 600"),
    );
    await world.until("its output", () => texts.out === "begun\n");
    signal("SIGINT");
    expect(await closed).toBe(130);
    expect(texts.err).toContain("m1 is stopped (killed by SIGINT); start it again with: lazarus revive m1\n");
    expect(world.state("m1")).toBe("stopped");
    expect(world.record("m1")).toMatchObject({
      wish: "stopped",
      end: { epoch: 1 },
      decision: { at_ms: null },
    });
    expect((await world.call(["why", "m1"])).stdout).toContain("m1 was stopped by you (killed by SIGINT).");
  });

  it("a crash is revived in the same terminal, even while a pit is running", async () => {
    configure({ backoff_seconds: [0] });
    await world.openPit();
    const script =
      'echo "life $LAZARUS_EPOCH"; [ "$LAZARUS_EPOCH" = 1 ] && kill -9 $$; read line; echo "got $line"; exit 78';
    const { child, texts, closed } = open("run", "m1", "--revive", "yes", ...sh(script));
    await world.until("its second life", () => texts.out === "life 1\nlife 2\n");
    expect(world.record("m1").life).toMatchObject({ epoch: 2, foreground: { pid: child.pid } });
    child.stdin!.write("a word\n");
    expect(await closed).toBe(78);
    expect(texts.out).toBe("life 1\nlife 2\ngot a word\n");
    expect(texts.err).toContain("m1: killed by SIGKILL; crash checkpoint ");
    expect(world.log("m1")).toBe("");
  });

  it("what it prints to stderr is shown, and says why it failed", async () => {
    configure({ quota_patterns: ["^budget spent, back in (.*)"] });
    const script = "echo result; echo 'budget spent, back in 2 hours' >&2; exit 3";
    const { texts, closed } = open("run", "m1", "--revive", "ask", ...sh(script));
    expect(await closed).toBe(3);
    expect(texts.out).toBe("result\n");
    expect(texts.err).toContain("budget spent, back in 2 hours\n");
    expect(world.log("m1")).toBe("budget spent, back in 2 hours\n");
    expect(world.record("m1").end).toMatchObject({ class: "quota", exit_code: 3, leftovers: 0 });
  });

  it("`logs` says where its output went", async () => {
    const { closed } = open("run", "m1", ...sh("echo result; echo problem >&2"));
    expect(await closed).toBe(0);
    const shared = "the agent used the output of lazarus run, and at most its stderr is in the log";
    const logs = await world.call(["logs", "m1"]);
    expect(logs).toMatchObject({ exit: 6, stdout: "" });
    expect(logs.stderr).toContain(`m1 has no agent log: ${shared}`);
    expect(logs.stderr).toContain("start it with -d or in a terminal");
    configure({ quota_patterns: ["^budget spent"] });
    await open("run", "m1", ...sh("echo result; echo problem >&2")).closed;
    expect(await world.call(["logs", "m1"])).toMatchObject({
      exit: 0,
      stdout: "problem\n",
      stderr: expect.stringContaining(`the output of life 2 is not here: ${shared}`),
    });
    await world.call(["run", "m1", "-d", ...sh("echo detached")]);
    await world.until("its end", () => world.log("m1").includes("detached"));
    expect(await world.call(["logs", "m1"])).toMatchObject({ stdout: "problem\ndetached\n", stderr: "" });
  });

  it("it keeps working when its stderr is closed, and the log has its output", async () => {
    configure({ quota_patterns: ["^budget spent"] });
    const script = "echo begun >&2; read line; echo 'on and on' >&2; echo done > done; exit 5";
    const { child, texts, closed } = open("run", "m1", "--revive", "no", ...sh(script));
    await world.until("its output", () => texts.err.includes("begun\n"));
    child.stderr!.destroy();
    child.stdin!.write("go\n");
    expect(await closed).toBe(5);
    expect(world.log("m1")).toBe("begun\non and on\n");
    expect(world.record("m1").end).toMatchObject({ exit_code: 5, signal: null });
  });

  it("the order of stdout and stderr stays where both go to the same place", () => {
    configure({ quota_patterns: ["^budget spent"] });
    const script = "for n in 1 2 3 4 5 6 7 8 9; do echo out $n; echo err $n >&2; done";
    const { stdout } = world.shell(`lazarus run m1 -- sh -c '${script}' 2>&1`);
    const printed = stdout.split("\n").filter((line) => /^(?:out|err) \d$/.test(line));
    expect(printed).toEqual(Array.from({ length: 9 }, (_, n) => [`out ${n + 1}`, `err ${n + 1}`]).flat());
  });

  it("Ctrl-C reaches the agent, and what it prints last is not lost", async () => {
    configure({ quota_patterns: ["^budget spent"] });
    const script = "trap 'echo bye >&2; exit 7' INT; echo begun >&2; while :; do sleep 0.05; done";
    const { texts, closed, signal } = open("run", "m1", ...sh(script));
    await world.until("its output", () => texts.err.includes("begun\n"));
    signal("SIGINT");
    expect(await closed).toBe(7);
    expect(texts.err).toContain("bye\n");
    expect(world.state("m1")).toBe("stopped");
  });

  it("Ctrl-C during the backoff is a stop", async () => {
    configure({ backoff_seconds: [600] });
    const { texts, closed, signal } = open("run", "m1", "--revive", "yes", ...sh("exit 3"));
    await world.until("the wait", () => texts.err.includes("Ctrl-C stops it"));
    expect(world.state("m1")).toBe("waiting");
    signal("SIGINT");
    expect(await closed).toBe(3);
    expect(world.state("m1")).toBe("stopped");
    // It crashed before the stop, and nothing is due any more.
    expect(world.run(["why", "m1"]).stdout).toMatch(
      /^m1 exited with code \d+[\s\S]*no action: stopped by you\n/,
    );
  });

  it("a revival by the user during the backoff runs in the background, and the command ends", async () => {
    configure({ backoff_seconds: [600] });
    const script = '[ "$LAZARUS_EPOCH" = 1 ] && exit 3; exec sleep 600';
    const { texts, closed } = open("run", "m1", "--revive", "yes", ...sh(script));
    await world.until("the wait", () => texts.err.includes("Ctrl-C stops it"));
    expect((await world.call(["revive", "m1"])).exit).toBe(0);
    expect(await closed).toBe(3);
    expect(texts.err).toContain("m1 continues in the background as life 2");
    expect(world.state("m1")).toBe("running");
  });

  it("when the terminal is gone, the pit revives the agent in the background", async () => {
    configure({ backoff_seconds: [0] });
    await world.openPit();
    const { texts, closed, signal } = open(
      "run",
      "m1",
      "--revive",
      "yes",
      ...sh('echo "life $LAZARUS_EPOCH"; exec sleep 600'),
    );
    await world.until("its output", () => texts.out === "life 1\n");
    signal("SIGHUP");
    expect(await closed).toBe(129);
    await world.until("its second life", () => world.log("m1") === "life 2\n");
    expect(world.record("m1")).toMatchObject({ wish: "running", life: { epoch: 2, foreground: null } });
  });

  it("Ctrl-C in attach detaches, and the agent keeps running", async () => {
    await world.call(["run", "m1", "-d", ...sh("while :; do echo tick; sleep 0.05; done")]);
    const { texts, closed, signal } = open("attach", "m1");
    await world.until("its output", () => texts.out.includes("tick"));
    expect(texts.err).toContain("Ctrl-C detaches, the agent keeps running");
    signal("SIGINT");
    expect(await closed).toBe(0);
    expect(texts.err).toContain("detached from m1, which keeps running; stop it with: lazarus stop m1\n");
    expect(world.state("m1")).toBe("running");
  });
});
