// Consent (INV-11): what the user granted is stored outside the cell. An agent that rewrites its own cell, or a cell that
// comes from elsewhere, gets nothing more.
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const sh = (script: string) => ["--", "sh", "-c", script];
const cellFile = (mission: string) => join(world.missions, mission, "config", "cell.json");
/** Shell code in which an agent rewrites its own cell.json. */
const rewrite = (document: object) => `echo '${JSON.stringify(document)}' > "$LAZARUS_CELL/config/cell.json"`;

describe("an agent that rewrites its own config", () => {
  const greedy = {
    revive: "yes",
    max_revivals_per_hour: 1_000_000,
    backoff_seconds: [0],
    quota_patterns: ["(a+)+$"],
  };

  it("is not revived without consent", async () => {
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh(`${rewrite({ pit: greedy })}; exit 1`)]);
    await world.until("the question", () => world.state("m1") === "asking");
    expect(world.record("m1")).toMatchObject({ revivals_ms: [], decision: { reason: "revive mode is ask" } });
    const { stderr } = await world.call(["revive", "m1", "--dry-run"]);
    for (const key of Object.keys(greedy))
      expect(stderr).toContain(
        `warning: ${cellFile("m1")}: pit.${key} is ignored: a cell can only narrow what you granted; to grant it: lazarus set m1 ${key}=VALUE\n`,
      );
  });

  it("is started with the commands that the user gave", async () => {
    await world.openPit();
    const script = (life: string) => `echo ${life} $LAZARUS_EPOCH; test $LAZARUS_EPOCH = 2 && exec sleep 600`;
    const evil = { resume_command: ["sh", "-c", "echo evil; exec sleep 600"] };
    await world.call([
      "run",
      "m1",
      "-d",
      "--revive",
      "yes",
      ...sh(`${script("mine")}; ${rewrite(evil)}; exit 1`),
    ]);
    const resume = `sh -c '${script("resumed $0")}' {session}`;
    const session = `echo '{"session_id": "abc-123"}' > "$LAZARUS_CELL/state/session.json"`;
    await world.call([
      "run",
      "m2",
      "-d",
      "--revive",
      "yes",
      "--resume-command",
      resume,
      ...sh(`${session}; exit 1`),
    ]);
    await world.until("the start command", () => world.log("m1") === "mine 1\nmine 2\n");
    await world.until("the resume command", () => world.log("m2") === "resumed abc-123 2\n");
  });

  it("cannot pass an option as its session", async () => {
    await world.openPit();
    const evil = `echo '{"session_id": "--dangerously-skip-permissions"}' > "$LAZARUS_CELL/state/session.json"`;
    const script = `echo "started $LAZARUS_EPOCH"; test $LAZARUS_EPOCH = 2 && exec sleep 600; ${evil}; exit 1`;
    const resume = "sh -c 'echo resumed $0; exec sleep 600' {session}";
    await world.call(["run", "m1", "-d", "--revive", "yes", "--resume-command", resume, ...sh(script)]);
    await world.until("the start command", () => world.log("m1") === "started 1\nstarted 2\n");
    expect((await world.call(["why", "m1"])).stdout).toContain(
      "started with its start command, since resume_command cannot be used: the value of {session} starts with a dash\n",
    );
  });
});

describe("a cell from elsewhere", () => {
  it("gets its data, but no permissions", async () => {
    await world.call(["init", "m1"]);
    const cell = { mission_id: "m1", pit: { revive: "yes" }, resume_command: ["sh", "-c", "echo evil"] };
    writeFileSync(cellFile("m1"), JSON.stringify(cell));
    const archive = join(world.directory, "m1.tar.gz");
    for (const line of [
      ["checkpoint", "m1"],
      ["export", "m1", "-o", archive],
      ["import", archive, "--mission", "m2"],
      ["fork", "m1", "m3"],
    ])
      expect(await world.call(line)).toMatchObject({ exit: 0 });
    await world.openPit();
    for (const mission of ["m2", "m3"]) {
      await world.call(["run", mission, "-d", ...sh("echo mine; exit 1")]);
      await world.until("the question", () => world.state(mission) === "asking");
      expect((await world.call(["revive", mission])).stderr).toContain("resume_command is ignored");
      await world.until("the start command", () => world.log(mission) === "mine\nmine\n");
    }
  });
});

describe("lazarus set", () => {
  const granted = (mission: string) => world.record(mission).settings;

  it("changes what is granted; a pending question is decided again", async () => {
    await world.openPit();
    const script = "echo life $LAZARUS_EPOCH; test $LAZARUS_EPOCH = 2 && exec sleep 600; exit 1";
    await world.call(["run", "m1", "-d", ...sh(script)]);
    await world.until("the question", () => world.state("m1") === "asking");
    expect(await world.call(["set", "m1", "revive=yes", "max_revivals_per_hour=1"])).toMatchObject({
      exit: 0,
    });
    await world.until("the revival", () => world.log("m1") === "life 1\nlife 2\n");
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("the limit", () => world.state("m1") === "tombstone");
    expect(world.record("m1").decision.reason).toContain("the limit is 1");
  });

  it("cancels a revival that is due", async () => {
    writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: { backoff_seconds: [600] } }));
    await world.openPit();
    await world.call(["run", "m1", "-d", "--revive", "yes", ...sh("exit 1")]);
    await world.until("the wait", () => world.state("m1") === "waiting");
    await world.call(["set", "m1", "revive=no"]);
    await world.until("the end of the wait", () => world.state("m1") === "dead");
  });

  it("shows what is granted, and unsets it", async () => {
    world.run(["run", "m1", "--revive", "no", ...sh("exit 1")]);
    await world.call([
      "set",
      "m1",
      'quota_patterns=["full (.*)"]',
      "resume_command=agent --resume {session}",
    ]);
    await world.call(["set", "m1", "stall_seconds=60", "grace_seconds=1"]);
    const { stdout, stderr } = await world.call(["set", "m1", "--unset", "grace_seconds"]);
    expect(stderr).toContain("the settings apply now");
    expect(stdout).toMatch(
      /^command = \["sh","-c","exit 1"\]\nresume_command = \["agent","--resume","\{session\}"\]\nquota_patterns = \["full \(\.\*\)"\]\nstall_seconds = 60\nrevive = no\nenvironment: \d+ variables\n$/,
    );
    expect((await world.call(["set", "m1"])).stdout).toBe(stdout);
    expect(granted("m1")).toEqual({ quota_patterns: ["full (.*)"], stall_seconds: 60 });
    // A resume command belongs to the command that it resumes; settings belong to the mission.
    world.run(["run", "m1", ...sh("exit 1")]);
    expect(world.record("m1").resume_command).toEqual(["agent", "--resume", "{session}"]);
    world.run(["run", "m1", "--replace", ...sh("exit 2")]);
    expect(world.record("m1")).toMatchObject({ resume_command: null, settings: { stall_seconds: 60 } });
  });

  it.each([
    ["revive=always", "revive is not one of yes, no, ask, substitute"],
    ["stall_seconds=0", "stall_seconds is not a number of seconds above 0, or null"],
    ["revife=yes", 'unknown key "revife"; did you mean revive?'],
    ["revive", 'unexpected argument "revive"; expected KEY=VALUE'],
    ["resume_command={session}", 'the program "{session}" contains a placeholder'],
    ["quota_patterns=(", "quota_patterns is not a list of regular expressions"],
  ])("refuses %s", async (word, message) => {
    const { exit, stderr } = await world.call(["set", "m1", word]);
    expect({ exit, stderr }).toEqual({ exit: 2, stderr: expect.stringContaining(message) });
  });
});

describe("inside an agent", () => {
  it("commands that grant something are refused; those that stop it are not", () => {
    const script = [
      "lazarus set m1 revive=yes",
      "lazarus set other revive=yes",
      "lazarus run m1 --revive yes -- true",
      "lazarus revive m1",
    ].map((line) => `${line} 2>&1; echo exit $?`);
    const { stdout } = world.run(["run", "m1", ...sh(script.join("; "))]);
    expect(stdout.match(/exit \d+/g)).toEqual(["exit 7", "exit 7", "exit 7", "exit 7"]);
    expect(stdout).toContain(
      "lazarus set is refused here: this process belongs to life 1 of m1, and an agent cannot grant itself anything",
    );
    expect(world.record("m1")).toMatchObject({ settings: {}, revive: null });
  });
});

describe("the environment of the first life", () => {
  const file = (mission: string) => join(world.home, "run", "agents", mission, "environment.json");
  const KEY = "sk-test-0123456789";
  const show = 'echo "$LAZARUS_EPOCH $API_KEY $OTHER"; test $LAZARUS_EPOCH = 2 && exec sleep 600; exit 1';
  const mine = { env: { API_KEY: KEY, OTHER: "x y" } };

  it("is used for a revival by a pit with another environment", async () => {
    await world.openPit();
    const { stderr } = world.run(["run", "m1", "-d", "--revive", "yes", ...sh(show)], mine);
    expect(stderr).toMatch(/^keeping \d+ environment variables for revivals, outside the cell; /m);
    await world.until("the revival", () => world.log("m1") === `1 ${KEY} x y\n2 ${KEY} x y\n`);
    expect(statSync(file("m1")).mode & 0o777).toBe(0o600);
  });

  it("is in no checkpoint, export, view or record", async () => {
    world.run(["run", "m1", ...sh("exit 1")], mine);
    await world.call(["export", "m1", "-o", join(world.directory, "m1.tar")]);
    const shown = [
      (await world.call(["status", "m1", "--json"])).stdout,
      (await world.call(["set", "m1"])).stdout,
    ];
    expect(shown.join("")).not.toContain(KEY);
    expect(
      world.shell(`zcat -rf "$LAZARUS_HOME/vault" "$LAZARUS_HOME/missions" 2>/dev/null | grep -c ${KEY}`)
        .stdout,
    ).toBe("0\n");
    expect(world.shell(`grep -rl ${KEY} "$LAZARUS_HOME"`).stdout).toBe(`${file("m1")}\n`);
  });

  it("is not kept with --no-env, except for named variables", async () => {
    await world.openPit();
    writeFileSync(join(world.directory, "keys.env"), "# keys\nOTHER='from file'\n");
    const options = ["--no-env", "--env-file", join(world.directory, "keys.env")];
    world.run(["run", "m1", "-d", "--revive", "yes", ...options, ...sh(show)], mine);
    await world.until("the revival", () => world.log("m1") === `1 ${KEY} from file\n2  from file\n`);
    expect(existsSync(file("m1"))).toBe(false);
  });

  it("is changed by set --env-file", async () => {
    world.run(["run", "m1", ...sh(show)], mine);
    writeFileSync(join(world.directory, "keys.env"), "API_KEY=new\n");
    expect(await world.call(["set", "m1", "--env-file", join(world.directory, "keys.env")])).toMatchObject({
      exit: 0,
    });
    await world.call(["revive", "m1"]);
    await world.until("the revival", () => world.log("m1") === "2 new x y\n");
  });

  it("that is lost needs the user, and set repairs it", async () => {
    await world.openPit();
    world.run(["run", "m1", "-d", "--revive", "yes", ...sh("exec sleep 600")], mine);
    rmSync(file("m1"));
    process.kill(world.life("m1").agent.pid, "SIGKILL");
    await world.until("the question", () => world.state("m1") === "asking");
    expect(world.record("m1").decision.reason).toContain(`cannot read the environment ${file("m1")}`);
    writeFileSync(join(world.directory, "keys.env"), "API_KEY=new\n");
    await world.call(["set", "m1", "--env-file", join(world.directory, "keys.env")]);
    await world.until("the revival", () => world.state("m1") === "running");
  });
});
