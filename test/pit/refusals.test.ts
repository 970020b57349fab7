// What commands refuse, and that a refused command leaves nothing behind: no mission, no cell, no life.
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const configure = (document: object) =>
  writeFileSync(join(world.home, "config.json"), JSON.stringify(document));
const agents = (mission = "") => join(world.home, "run", "agents", mission);

describe("a mission that does not exist", () => {
  it.each([
    ["stop"],
    ["stop", "--no-checkpoint"],
    ["rest"],
    ["pause"],
    ["revive"],
    ["revive", "--dry-run"],
    ["attach"],
    ["logs"],
    ["why"],
    ["status"],
    ["set", "revive=yes"],
  ])("is not created by %s, and a similar name is suggested", async (command, ...rest) => {
    mkdirSync(join(world.missions, "typo"), { recursive: true });
    const { exit, stderr } = await world.call([command, "tpyo", ...rest]);
    expect(stderr).toBe(
      "error: there is no mission tpyo; did you mean typo?\n  try: lazarus status, to list all missions\n",
    );
    expect(exit).toBe(6);
    expect(existsSync(agents("tpyo"))).toBe(false);
    expect(readdirSync(world.missions)).toEqual(["typo"]);
  });

  it.each(["stop", "rest", "pause", "revive"])("has no agent: %s says so", async (command) => {
    await world.call(["init", "m1"]);
    expect((await world.call([command, "m1"])).stderr).toContain("m1 has never had an agent");
    expect(existsSync(agents("m1"))).toBe(false);
  });
});

describe("a wrong config", () => {
  const WRONG = [
    [{ pit: { revive: "always" } }, "pit.revive"],
    [{ pit: { agents: { sh: { grace_seconds: -1 } } } }, "pit.agents.sh.grace_seconds"],
    [{ pit: { http_port: "80" } }, "pit.http_port"],
    [{ pit: { gitea: {} } }, "pit.gitea.secret_file"],
    [{ alerts: { on: ["doom"] } }, "alerts.on"],
    [{ alerts: { ntfy: "https://ntfy.sh" } }, "alerts.ntfy"],
    [{ retention: { keep_last: -1 } }, "retention.keep_last"],
  ] as const;

  it.each(WRONG)("is refused by run, before anything is created: %j", async (document, key) => {
    configure(document);
    const { exit, stderr } = await world.call(["run", "m1", "-d", ...sh("exit 1")]);
    expect({ exit, stderr }).toEqual({ exit: 78, stderr: expect.stringContaining(`${key} is not`) });
    expect(existsSync(agents("m1"))).toBe(false);
    expect(existsSync(join(world.missions, "m1"))).toBe(false);
  });

  it.each(WRONG)("is reported by doctor: %j", async (document, key) => {
    configure(document);
    const { exit, stdout } = await world.call(["doctor"]);
    expect(exit).toBe(3);
    expect(stdout).toMatch(new RegExp(`failed +config: .*${key.replaceAll(".", "\\.")} is not`));
  });

  it("with misspelt keys is used, and doctor and config report each key", async () => {
    configure({ alerts: { comand: "true" }, flow: { rot: "x" }, retention: { keep: 1 }, pit: { stal: 1 } });
    const file = join(world.home, "config.json");
    const lines = [
      `${file}: pit: unknown key "stal" is not used`,
      `${file}: retention: unknown key "keep" is not used`,
      `${file}: alerts: unknown key "comand" is not used`,
      `${file}: flow: unknown key "rot" is not used`,
    ];
    const { stdout } = await world.call(["doctor"]);
    for (const line of lines) expect(stdout).toContain(line);
    const { stderr } = await world.call(["config"]);
    for (const line of lines) expect(stderr).toContain(`warning: ${line}\n`);
  });
});

describe("a command that cannot be started", () => {
  it.each([
    ["no-such-command", 'the command "no-such-command" is not on PATH'],
    ["./agent.sh", 'the command "./agent.sh" does not exist'],
    ["/etc/passwd", 'the command "/etc/passwd" is not executable'],
    ["/", 'the command "/" is not executable'],
  ])("is an error of run, before anything is created: %s", async (program, problem) => {
    for (const detach of [["-d"], []]) {
      const { exit, stderr } = await world.call(["run", "m1", ...detach, "--", program]);
      // Nothing is announced that does not happen.
      expect(stderr.split("\n")[0]).toBe(`error: cannot start the agent of m1: ${problem}`);
      expect(exit).toBe(127);
    }
    expect(existsSync(agents("m1"))).toBe(false);
    expect(existsSync(join(world.missions, "m1"))).toBe(false);
  });

  it("is not retried when it is missing at a revival, and lazarus why names it", async () => {
    configure({ pit: { backoff_seconds: [600] } });
    await world.openPit();
    const program = world.write("bin/agent", "#!/bin/sh\nexec sleep 600\n");
    chmodSync(program, 0o755);
    for (const mission of ["m1", "m2"])
      await world.call(["run", mission, "-d", "--revive", "yes", "--", "agent"]);
    process.kill(world.life("m2").agent.pid, "SIGKILL");
    await world.until("the wait", () => world.state("m2") === "waiting");
    rmSync(program);
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("the question", () => world.state("m1") === "asking");
    const reason = 'the command "agent" is not on PATH';
    expect((await world.call(["why", "m1"])).stdout).toContain(`needs your approval: ${reason}`);
    expect((await world.call(["revive", "m1"])).stderr).toContain(reason);
    expect(world.record("m1").life.epoch).toBe(1);
    // Not even when it disappears while the revival is due.
    const record = world.record("m2");
    const decision = { ...record.decision, at_ms: record.decision.decided_ms };
    writeFileSync(join(agents("m2"), "record.json"), JSON.stringify({ ...record, decision }));
    writeFileSync(join(world.home, "run", "bell", "m2"), "");
    await world.until("the question", () => world.state("m2") === "asking");
    expect(world.record("m2").decision.reason).toContain(reason);
  });
});

describe("another command while a revival is due", () => {
  it.each([
    ["yes", "waiting", "is due to be revived, with another command"],
    ["ask", "asking", "waits for your approval to be revived, with another command"],
  ])("is refused with revive mode %s, unless --replace is given", async (mode, state, message) => {
    configure({ pit: { backoff_seconds: [600] } });
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", mode, ...sh("exit 1")]);
    await world.until("the decision", () => world.state("m1") === state);
    const before = world.record("m1");
    const { exit, stderr } = await world.call(["run", "m1", "-d", "--", "true"]);
    expect({ exit, stderr }).toEqual({ exit: 7, stderr: expect.stringContaining(message) });
    expect(stderr).toContain(
      "lazarus revive m1, or start the new command with: lazarus run m1 --replace -- COMMAND",
    );
    expect(world.record("m1")).toEqual(before);
    // The same command replaces nothing.
    expect((await world.call(["run", "m1", "-d", "--revive", mode, ...sh("exit 1")])).exit).toBe(0);
    await world.until("the decision", () => world.state("m1") === state);
    expect((await world.call(["run", "m1", "-d", "--replace", "--", "true"])).exit).toBe(0);
    await world.until("its end", () => world.state("m1") === "finished");
    expect(world.record("m1").command).toEqual(["true"]);
  });
});
