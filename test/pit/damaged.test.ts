// Damaged files: truncated or edited records, missing keeper files, a broken registry, invalid settings. The pit continues
// with everything else, and reports once what is wrong and what to do.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAUNCHER } from "../cli/hermetic.ts";
import { createPitWorld, killIfRunning, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const configure = (document: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify(document));
const agents = (file: string, mission = "m1") => join(world.home, "run", "agents", mission, file);
const edit = (file: string, change: (value: Record<string, unknown>) => object) =>
  writeFileSync(agents(file), JSON.stringify(change(JSON.parse(readFileSync(agents(file), "utf8")))));
const startSleeper = () => world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")]);
const killAgent = () => process.kill(world.life("m1").agent.pid, "SIGKILL");

/** A pit whose stderr is collected. */
function openLoggingPit(): { pit: ChildProcess; output(): string } {
  let output = "";
  const pit = spawn(process.execPath, [LAUNCHER, "pit"], {
    cwd: world.cwd,
    env: world.env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  pit.stderr!.on("data", (chunk) => {
    output += chunk;
  });
  return { pit, output: () => output };
}

describe("a record", () => {
  it.each<[string, () => void]>([
    ["that is truncated", () => writeFileSync(agents("record.json"), '{"format": 1, "mission": "m1"')],
    ["without required fields", () => writeFileSync(agents("record.json"), '{"format": 1}')],
    ["with an invalid life", () => edit("record.json", (record) => ({ ...record, life: "yes" }))],
    [
      "with an unknown desired state",
      () => edit("record.json", (record) => ({ ...record, wish: "immortality" })),
    ],
    ["of a later version", () => edit("record.json", (record) => ({ ...record, format: 2 }))],
    [
      "that is a directory",
      () => {
        rmSync(agents("record.json"));
        mkdirSync(agents("record.json"));
      },
    ],
  ])("%s is reported by status and why, and a new start works", async (_, damage) => {
    world.run(["run", "m1", ...sh("exit 1")]);
    damage();
    const why = await world.call(["why", "m1"]);
    expect(why.stdout).toMatch(/cannot read the agent record \S+: .*; try: mv \S+ \S+\.damaged/);
    expect((await world.call(["status"])).stdout).toContain("for details: lazarus why");
    expect((await world.call(["revive", "m1"])).exit).toBe(8);
    renameSync(agents("record.json"), agents("record.json.damaged"));
    expect(world.run(["run", "m1", ...sh("exit 0")]).exit).toBe(0);
    expect(world.record("m1").life.epoch).toBe(2);
  });

  it("that is damaged does not affect other agents, and is reported once", async () => {
    configure({ pit: { backoff_seconds: [0] } });
    await startSleeper();
    mkdirSync(agents("", "m0"), { recursive: true });
    writeFileSync(agents("record.json", "m0"), "not JSON");
    const { pit, output } = openLoggingPit();
    try {
      await world.until("the report", () => output().includes("m0: cannot read the agent record"));
      expect(output()).toContain("try: mv");
      killAgent();
      await world.until("life 2", () => world.life("m1").epoch === 2);
      expect(output().match(/m0: /g)).toHaveLength(1);
    } finally {
      pit.kill("SIGKILL");
    }
  });

  it("that is missing while the agent runs: stop works, no second agent starts", async () => {
    await startSleeper();
    rmSync(agents("record.json"));
    expect((await world.call(["why", "m1"])).stdout).toMatch(
      /an agent is running, but its record is missing\nnext\n {2}lazarus stop m1/,
    );
    const second = await world.call(["run", "m1", "-d", ...sh("sleep 600")]);
    expect(second.exit).toBe(10);
    expect(second.stderr).toContain("lazarus stop m1");
    expect((await world.call(["stop", "m1", "--no-checkpoint"])).exit).toBe(0);
    expect(world.processes()).toEqual([]);
    const revive = await world.call(["revive", "m1"]);
    expect(revive.exit).toBe(6);
    expect(revive.stderr).toContain("lazarus run m1 -- COMMAND");
    expect(world.run(["run", "m1", ...sh("exit 0")]).exit).toBe(0);
  });
});

it("a damaged record does not keep a running agent from being stopped", async () => {
  await startSleeper();
  writeFileSync(agents("record.json"), "not JSON");
  expect((await world.call(["why", "m1"])).stdout).toMatch(/next\n {2}lazarus stop m1\n/);
  const stop = await world.call(["stop", "m1", "--no-checkpoint"]);
  expect([stop.exit, stop.stderr]).toEqual([0, expect.stringMatching(/^m1 is stopped;/)]);
  expect(world.processes()).toEqual([]);
  expect(stop.stderr).toContain("start it again with: lazarus run m1 -- COMMAND");
  expect(readFileSync(agents("record.json.damaged"), "utf8")).toBe("not JSON");
  expect(world.state("m1")).toBe("stopped");
  expect(world.run(["run", "m1", ...sh("exit 0")]).exit).toBe(0);
});

describe("the keeper's files", () => {
  it.each(["life.json", "exit.json"])("an invalid %s counts as a lost keeper", async (file) => {
    configure({ pit: { backoff_seconds: [0] } });
    await startSleeper();
    killAgent();
    await world.until("its end", () => world.state("m1") === "ending");
    writeFileSync(agents(file), '{"epoch": "one"}');
    await world.openPit();
    await world.until("life 2", () => world.life("m1").epoch === 2 && world.state("m1") === "running");
    expect(world.record("m1").end.kind).toBe("crash");
  });

  it("an agent without life.json can be stopped", async () => {
    await startSleeper();
    rmSync(agents("life.json"));
    const stop = await world.call(["stop", "m1", "--no-checkpoint"]);
    expect(stop.exit).toBe(0);
    expect(stop.stderr).toMatch(/^m1 is stopped;/);
    expect(world.processes()).toEqual([]);
  });

  it("an agent that forged all of them can be stopped", async () => {
    await startSleeper();
    rmSync(agents("life.lock"));
    writeFileSync(agents("life.json"), "garbage");
    writeFileSync(agents("exit.json"), "[]");
    writeFileSync(agents("epoch"), "99\n");
    expect((await world.call(["why", "m1"])).stdout).toMatch(/^m1 is running\.\n/);
    const stop = await world.call(["stop", "m1", "--no-checkpoint"]);
    expect([stop.exit, stop.stderr]).toEqual([0, expect.stringMatching(/^m1 is stopped;/)]);
    expect(world.processes()).toEqual([]);
    expect(world.state("m1")).toBe("stopped");
  });

  it("a reused pid is never signaled", async () => {
    await startSleeper();
    const { keeper, agent } = world.life("m1");
    for (const pid of [keeper.pid, agent.pid]) killIfRunning(pid);
    const unrelated = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
    // The kernel counts in ticks of 10 ms, and does not reuse a pid within one.
    const reused = ({ startTime }: { startTime: string }) => ({
      pid: unrelated.pid,
      startTime: String(Number(startTime) - 1),
    });
    try {
      edit("life.json", (life) => ({
        ...life,
        keeper: { ...(life.keeper as object), ...reused(keeper) },
        agent: { ...(life.agent as object), ...reused(agent) },
      }));
      expect((await world.call(["stop", "m1", "--no-checkpoint", "--grace", "0"])).exit).toBe(0);
      expect(world.state("m1")).toBe("stopped");
      process.kill(unrelated.pid!, 0);
      expect(unrelated.signalCode).toBeNull();
    } finally {
      unrelated.kill("SIGKILL");
    }
  });

  it("an invalid epoch file does not lower the epoch", () => {
    world.run(["run", "m1", ...sh("exit 1")]);
    world.run(["run", "m1", ...sh("exit 1")]);
    writeFileSync(agents("epoch"), "many\n");
    world.run(["run", "m1", ...sh("exit 1")]);
    expect(world.record("m1").life.epoch).toBe(3);
  });
});

describe("the clock", () => {
  it("does not lengthen a wait when it is set back", async () => {
    configure({ pit: { backoff_seconds: [600] } });
    const pit = await world.openPit();
    await startSleeper();
    killAgent();
    await world.until("the wait", () => world.state("m1") === "waiting");
    pit.kill("SIGKILL");
    await world.until("its end", () => pit.signalCode !== null);
    const DAY = 86_400_000;
    // A wait of two seconds, decided tomorrow.
    edit("record.json", (record) => {
      const decision = record.decision as { decided_ms: number };
      const decidedMs = decision.decided_ms + DAY;
      return { ...record, decision: { ...decision, decided_ms: decidedMs, at_ms: decidedMs + 2000 } };
    });
    await world.openPit();
    await world.until("life 2", () => world.life("m1").epoch === 2);
  });

  it("makes an overdue revival from days ago need approval", async () => {
    configure({ pit: { backoff_seconds: [600] } });
    const pit = await world.openPit();
    await startSleeper();
    killAgent();
    await world.until("the wait", () => world.state("m1") === "waiting");
    pit.kill("SIGKILL");
    await world.until("its end", () => pit.signalCode !== null);
    const ago = Date.now() - 3 * 86_400_000;
    edit("record.json", (record) => ({
      ...record,
      last_seen_ms: ago,
      end: { ...(record.end as object), at_ms: ago },
      decision: { ...(record.decision as object), decided_ms: ago, at_ms: ago + 600_000 },
    }));
    await world.openPit();
    await world.until("the question", () => world.state("m1") === "asking");
    expect((await world.call(["why", "m1"])).stdout).toContain("it died 72 h ago");
  });
});

describe("the registry", () => {
  it("that is not a database loses events, is reported once, and does not delay revivals", async () => {
    configure({ pit: { backoff_seconds: [0] }, alerts: { command: "true" } });
    writeFileSync(
      join(world.home, "registry.db"),
      "this is not a database, no matter how long it is".repeat(100),
    );
    await startSleeper();
    const { pit, output } = openLoggingPit();
    try {
      await world.until("the report", () => output().includes("lazarus registry rebuild"));
      for (const epoch of [2, 3]) {
        killAgent();
        await world.until(`life ${epoch}`, () => world.life("m1").epoch === epoch);
      }
      expect(output().match(/cannot open the registry/g)).toHaveLength(1);
    } finally {
      pit.kill("SIGKILL");
    }
  });
});

describe("settings", () => {
  it.each<[object, string]>([
    [{ pit: 7 }, "pit is not an object"],
    [{ pit: { revive: "always" } }, "pit.revive is not one of yes, no, ask, substitute"],
    [{ pit: { grace_seconds: -5 } }, "pit.grace_seconds is not a number, 0 or more"],
    [
      { pit: { agents: { claude: { grace_seconds: -1 } } } },
      "pit.agents.claude.grace_seconds is not a number",
    ],
    [{ pit: { http_port: "80" } }, "pit.http_port is not a port number"],
    [{ pit: { gitea: {} } }, "pit.gitea.secret_file is not a path"],
    [{ alerts: { on: ["doom"] } }, "alerts.on is not a list of kinds of events"],
  ])("%j are refused before the pit starts, with file and key", (document, message) => {
    configure(document);
    const { exit, stderr } = world.run(["pit"]);
    expect(exit).toBe(78);
    expect(stderr).toContain(`${join(world.home, "config.json")}: ${message}`);
    expect(stderr).toContain("try: edit it, then: lazarus config");
  });

  it("with an unknown key are used, and the key is reported", async () => {
    configure({ pit: { stall_second: 5, agents: { claude: { revife: "no" } } }, alerts: { comand: "true" } });
    const { pit, output } = openLoggingPit();
    try {
      await world.until("the start", () => output().includes("pit started for"));
      expect(output()).toContain('alerts: unknown key "comand" is not used');
      expect(output()).toContain('pit: unknown key "stall_second" is not used');
      expect(output()).toContain('pit.agents.claude: unknown key "revife" is not used');
    } finally {
      pit.kill("SIGKILL");
    }
  });

  it.each([
    ["garbage", "{"],
    ["an unknown mode", '{"pit": {"revive": "always"}}'],
  ])("of the cell that are %s neither revive the agent nor prevent a stop", async (_, text) => {
    configure({ pit: { revive: "yes", backoff_seconds: [0] } });
    await world.openPit();
    const file = join(world.missions, "m1", "config", "cell.json");
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    writeFileSync(file, text);
    killAgent();
    await world.until("the question", () => world.state("m1") === "asking");
    await world.call(["revive", "m1"]);
    const stop = await world.call(["stop", "m1", "--no-checkpoint"]);
    expect(stop.exit).toBe(0);
    expect(stop.stderr).toContain(`${file}: `);
    expect(world.processes()).toHaveLength(1);
  });
});

describe("pits", () => {
  it("started concurrently: one wins, the others name it", async () => {
    const pits = [openLoggingPit(), openLoggingPit(), openLoggingPit()];
    try {
      const running = () => pits.filter(({ output }) => output().includes("pit started for"));
      const refused = () => pits.filter(({ pit }) => pit.exitCode === 10);
      await world.until("a winner", () => running().length === 1 && refused().length === 2);
      for (const { output } of refused())
        await world.until("the message", () => output().includes(`process ${running()[0]!.pit.pid}`));
    } finally {
      for (const { pit } of pits) pit.kill("SIGKILL");
    }
  });

  it("that were killed do not count as running, even if their pid was reused", async () => {
    mkdirSync(join(world.home, "run"), { recursive: true });
    const owner = { pid: process.pid, host: hostname(), purpose: "pit", since: 1 };
    writeFileSync(join(world.home, "run", "pit.lock"), JSON.stringify(owner));
    await world.call(["init", "m1"]);
    expect((await world.call(["status"])).stdout).toContain("no pit is running");
  });

  it("of a new version adopt the old one's agents and read its records", async () => {
    await startSleeper();
    const [script] = world.shell(`ls ${world.home}/run/keeper-*.sh`).stdout.trim().split("\n");
    renameSync(script!, join(world.home, "run", "keeper-000000000000.sh"));
    edit("record.json", ({ stalled: _, stall_seconds: __, last_seen_ms: ___, ...record }) => ({
      ...record,
      life: { ...(record.life as object), log_bytes: undefined },
      written_by: "another version",
    }));
    const { agent } = world.life("m1");
    await world.openPit();
    await world.until("its adoption", () => world.state("m1") === "running");
    expect(world.life("m1").agent.pid).toBe(agent.pid);
    killAgent();
    await world.until("life 2", () => world.life("m1").epoch === 2);
    expect(existsSync(script!)).toBe(true);
    expect(world.record("m1").written_by).toBe("another version");
  });
});
