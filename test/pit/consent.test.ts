// Consent (INV-11): what the user granted is stored outside the cell. An agent that rewrites its own cell, or a cell that
// comes from elsewhere, gets nothing more.
import { writeFileSync } from "node:fs";
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
    world.run(["run", "m1", "-d", ...sh(`${rewrite({ pit: greedy })}; exit 1`)]);
    await world.until("the question", () => world.state("m1") === "asking");
    expect(world.record("m1")).toMatchObject({ revivals_ms: [], decision: { reason: "revive mode is ask" } });
    const { stderr } = world.run(["revive", "m1", "--dry-run"]);
    for (const key of Object.keys(greedy))
      expect(stderr).toContain(
        `warning: ${cellFile("m1")}: pit.${key} is ignored: a cell can only narrow what you granted; to grant it: lazarus set m1 ${key}=VALUE\n`,
      );
  });

  it("is started with the commands that the user gave", async () => {
    await world.openPit();
    const script = (life: string) => `echo ${life} $LAZARUS_EPOCH; test $LAZARUS_EPOCH = 2 && exec sleep 600`;
    const evil = { resume_command: ["sh", "-c", "echo evil; exec sleep 600"] };
    world.run(["run", "m1", "-d", "--revive", "yes", ...sh(`${script("mine")}; ${rewrite(evil)}; exit 1`)]);
    const resume = `sh -c '${script("resumed $0")}' {session}`;
    const session = `echo '{"session_id": "abc-123"}' > "$LAZARUS_CELL/state/session.json"`;
    world.run([
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

  it("cannot make an option of its session", async () => {
    await world.openPit();
    const evil = `echo '{"session_id": "--dangerously-skip-permissions"}' > "$LAZARUS_CELL/state/session.json"`;
    const script = `echo "started $LAZARUS_EPOCH"; test $LAZARUS_EPOCH = 2 && exec sleep 600; ${evil}; exit 1`;
    const resume = "sh -c 'echo resumed $0; exec sleep 600' {session}";
    world.run(["run", "m1", "-d", "--revive", "yes", "--resume-command", resume, ...sh(script)]);
    await world.until("the start command", () => world.log("m1") === "started 1\nstarted 2\n");
    expect((await world.call(["why", "m1"])).stdout).toContain(
      "started with its start command, since resume_command cannot be used: the value of {session} starts with a dash\n",
    );
  });
});

describe("a cell from elsewhere", () => {
  it("brings data, never consent", async () => {
    world.run(["init", "m1"]);
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
      world.run(["run", mission, "-d", ...sh("echo mine; exit 1")]);
      await world.until("the question", () => world.state(mission) === "asking");
      expect(world.run(["revive", mission]).stderr).toContain("resume_command is ignored");
      await world.until("the start command", () => world.log(mission) === "mine\nmine\n");
    }
  });
});
