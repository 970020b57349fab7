// Live points (INV-10): recent work is in a checkpoint, no matter which process is killed.
import { execFileSync } from "node:child_process";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { worktreeRecords } from "../../src/cell/worktree-record.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;

beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

/** Far away, so that only the rule under test takes a point. */
const FAR = 3600;

function configure(pit: object): void {
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit }));
}

const sh = (script: string) => ["--", "sh", "-c", script];
const live = (mission: string) => world.checkpoints(mission).filter(({ reason }) => reason === "live");
/** The content of a file in the newest checkpoint; undefined when it is not there. */
async function saved(mission: string, path: string): Promise<string | undefined> {
  const { exit, stdout } = await world.call(["cat", mission, `worktree/${path}`]);
  return exit === 0 ? stdout : undefined;
}
const worktree = (mission: string) => join(world.missions, mission, "worktree");
const status = async (mission: string) =>
  JSON.parse((await world.call(["status", mission, "--json"])).stdout).missions[0];

describe("while an agent works, the pit", () => {
  it("saves what it wrote after a quiet moment, and reports whether anything is unsaved", async () => {
    configure({ quiet_seconds: 0.2, protect_within_seconds: FAR });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    writeFileSync(join(worktree("m1"), "one"), "1\n");
    await world.until("the first file", async () => (await saved("m1", "one")) === "1\n");
    mkdirSync(join(worktree("m1"), "a/b"), { recursive: true });
    writeFileSync(join(worktree("m1"), "a/b/two"), "2\n");
    await world.until("a file in a new directory", async () => (await saved("m1", "a/b/two")) === "2\n");
    rmSync(join(worktree("m1"), "one"));
    await world.until("the removal", async () => (await saved("m1", "one")) === undefined);
    await world.until("nothing unsaved", async () => (await status("m1")).live.unsaved_since_ms === null);
    expect((await status("m1")).live).toEqual({
      unsaved_since_ms: null,
      unsaved_changes: 0,
      is_late: false,
      unwatched: null,
      problem: null,
    });
    expect((await status("m1")).last_checkpoint.reason).toBe("live");
    expect((await world.call(["status", "m1"])).stdout).toContain("UNSAVED");
    expect(live("m1").length).toBeGreaterThanOrEqual(3);
  });

  it("saves within the limit although it never pauses", async () => {
    configure({ quiet_seconds: FAR, protect_within_seconds: 0.5 });
    await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      ...sh("i=0; while :; do i=$((i+1)); echo $i > file; sleep 0.05; done"),
    ]);
    await world.until("three points", () => live("m1").length >= 3);
    expect(Number(await saved("m1", "file"))).toBeGreaterThan(0);
  });

  it("takes no point while it only waits and sends heartbeats", async () => {
    configure({ quiet_seconds: 0.1, protect_within_seconds: FAR });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("while :; do echo working; sleep 0.05; done")]);
    await world.until("everything saved", async () => (await status("m1")).live?.unsaved_since_ms === null);
    const before = live("m1").length;
    const size = world.log("m1").length;
    await world.until("much output", () => world.log("m1").length > size + 8 * 40);
    world.run(["heartbeat", "m1"]);
    expect((await status("m1")).live.unsaved_since_ms).toBe(null);
    expect(live("m1").length).toBe(before);
  });

  it("takes no points while they are switched off", async () => {
    configure({ quiet_seconds: 0.1 });
    await world.call(["run", "m1", "-d", ...sh("while :; do date +%N > file; sleep 0.3; done")]);
    expect((await world.call(["set", "m1", "live", "off"])).exit).toBe(0);
    await world.openPit();
    await world.until("the pit to see it", () => world.state("m1") === "running");
    expect((await status("m1")).live).toBe(null);
    expect((await world.call(["set", "m1"])).stdout).toContain("protect_within_seconds = null\n");
    expect((await world.call(["set", "m1", "live", "0"])).exit).toBe(2);
    expect((await world.call(["set", "m1", "--unset", "live"])).exit).toBe(0);
    expect((await world.call(["set", "m1"])).stdout).not.toContain("protect_within_seconds");
    expect((await world.call(["set", "m1", "live", "1"])).exit).toBe(0);
    await world.until("a live point", () => live("m1").length > 0);
  });

  it("has saved everything but the last moment when all processes are killed", async () => {
    configure({ quiet_seconds: FAR, protect_within_seconds: 0.5 });
    const pit = await world.openPit();
    await world.call([
      "run",
      "m1",
      "-d",
      ...sh("i=0; while :; do i=$((i+1)); echo $i >> file; sleep 0.02; done"),
    ]);
    const file = join(worktree("m1"), "file");
    const lines = (text: string) => text.split("\n").length - 1;
    await world.until("some work", () => live("m1").length >= 2 && lines(readFileSync(file, "utf8")) > 100);
    const { keeper, agent } = world.life("m1");
    for (const pid of [pit.pid!, keeper.pid, agent.pid]) process.kill(pid, "SIGKILL");
    rmSync(worktree("m1"), { recursive: true, force: true });
    const text = (await saved("m1", "file"))!;
    expect(lines(text)).toBeGreaterThan(0);
    expect(text).toBe(Array.from({ length: lines(text) }, (_, index) => `${index + 1}\n`).join(""));
  });

  it("takes no point for what a checkpoint itself writes into the repository", async () => {
    configure({ quiet_seconds: 0.1, protect_within_seconds: FAR, protect_share: 1 });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    execFileSync("git", ["init", "-q"], { cwd: worktree("m1") });
    writeFileSync(join(worktree("m1"), "file"), "x");
    await world.until("the file", async () => (await saved("m1", "file")) === "x");
    await world.until("nothing unsaved", async () => (await status("m1")).live.unsaved_since_ms === null);
    const { git } = JSON.parse((await world.call(["checkpoint", "m1", "--json"])).stdout);
    expect(git.status).toBe("committed");
    const before = live("m1").length;
    // The commit's objects are noticed, and turn out to be saved.
    await world.until("nothing unsaved", async () => (await status("m1")).live.unsaved_since_ms === null);
    writeFileSync(join(worktree("m1"), "later"), "y");
    await world.until("the next change", async () => (await saved("m1", "later")) === "y");
    expect(live("m1").length).toBe(before + 1);
  });

  it("reports what is unsaved when its share of the time delays a point", async () => {
    configure({ quiet_seconds: 0.1, protect_within_seconds: 0.2, protect_share: 0.000001 });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    await world.until("the first point", async () => (await status("m1")).live?.unsaved_since_ms === null);
    for (const name of ["a", "b", "c"]) writeFileSync(join(worktree("m1"), name), "");
    await world.until("the delay", async () => (await status("m1")).live.is_late);
    expect((await status("m1")).live.unsaved_changes).toBeGreaterThanOrEqual(3);
    expect((await world.call(["status", "m1"])).stdout).toMatch(
      /m1: \d+ changes or more unsaved for longer than protect_within_seconds/,
    );
  });

  it("saves immediately when a hook reports the end of a turn, a compaction or a failure, or announces a command that deletes files", async () => {
    configure({ quiet_seconds: FAR, protect_within_seconds: FAR, protect_share: 1 });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    const { epoch } = world.life("m1");
    const hook = (event: object) =>
      world.run(["hook", "mybot", JSON.stringify(event)], {
        env: { LAZARUS_MISSION: "m1", LAZARUS_EPOCH: String(epoch) },
      });
    // The first point is also due immediately.
    hook({ kind: "turn-end" });
    await world.until("a first point", async () => (await status("m1")).live?.unsaved_since_ms === null);
    writeFileSync(join(worktree("m1"), "one"), "1\n");
    await world.until("the pit to see it", async () => (await status("m1")).live.unsaved_since_ms !== null);
    expect(await saved("m1", "one")).toBe(undefined);
    hook({ kind: "turn-end" });
    await world.until("the end of a turn", async () => (await saved("m1", "one")) === "1\n");
    for (const event of [{ kind: "compaction" }, { kind: "failure", class: "quota", message: "429" }]) {
      writeFileSync(join(worktree("m1"), event.kind), "1\n");
      await world.until("the pit to see it", async () => (await status("m1")).live.unsaved_since_ms !== null);
      hook(event);
      await world.until(event.kind, async () => (await saved("m1", event.kind)) === "1\n");
    }
    writeFileSync(join(worktree("m1"), "two"), "2\n");
    await world.until("the API", () => existsSync(join(world.home, "run/http.json")));
    hook({ kind: "tool-start", call: { id: "1", tool: "bash", command: "rm -rf ." } });
    await world.until("the command that deletes", async () => (await saved("m1", "two")) === "2\n");
  });

  it("saves what a repository's branch points to, and adds no commit", async () => {
    configure({ quiet_seconds: 0.2, protect_within_seconds: FAR });
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("exec sleep 600")]);
    const git = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=u", "-c", "user.email=u@u", ...args], {
        cwd: worktree("m1"),
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      });
    git("init", "-q", "-b", "main");
    writeFileSync(join(worktree("m1"), "file"), "x");
    git("add", "-A");
    git("commit", "-qm", "first");
    const head = git("rev-parse", "HEAD").trim();
    await world.until("the commit", async () => {
      const { git: position } = JSON.parse((await world.call(["show", "m1", "latest", "--json"])).stdout);
      return position.status === "deferred" && position.head === head;
    });
    expect(git("for-each-ref", "refs/lazarus")).not.toContain(live("m1").at(-1)!.checkpoint_id);
  });
});

describe("a directory that is protected without an agent", () => {
  it("whose record is damaged does not end the protection of other missions", async () => {
    configure({ quiet_seconds: 0.2, protect_within_seconds: FAR });
    const directory = join(world.directory, "app");
    mkdirSync(directory);
    await world.call(["protect", directory]);
    const records = worktreeRecords(world.missions);
    for (const name of readdirSync(records)) writeFileSync(join(records, name), "{");
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh("echo 1 > file; exec sleep 600")]);
    await world.until("the file", async () => (await saved("m1", "file")) === "1\n");
  });

  it("gets live points from a running pit, until it is released", async () => {
    configure({ quiet_seconds: 0.2, protect_within_seconds: FAR });
    const directory = join(world.directory, "app");
    mkdirSync(directory);
    writeFileSync(join(directory, "before"), "1\n");
    expect((await world.call(["protect", directory])).exit).toBe(0);
    await world.openPit();
    writeFileSync(join(directory, "after"), "2\n");
    await world.until("the file", async () => (await saved("app", "after")) === "2\n");
    expect(readdirSync(directory).sort()).toEqual(["after", "before"]);
    rmSync(join(directory, "before"));
    await world.until("the removal", async () => (await saved("app", "before")) === undefined);
    expect((await world.call(["restore", "app"])).stderr).toContain(
      "to go further back: lazarus restore app 10m",
    );
    const before = live("app").find(
      ({ checkpoint_id: id }) => world.run(["ls", "app", id, "worktree/before"]).exit === 0,
    );
    expect((await world.call(["restore", "app", before!.checkpoint_id])).exit).toBe(0);
    expect(readFileSync(join(directory, "before"), "utf8")).toBe("1\n");
    expect((await world.call(["release", directory])).exit).toBe(0);
    await world.until("the pit to see that", async () => (await status("app")).live === null);
  });

  it("stays protected when an agent has worked there and ended, or was stopped", async () => {
    configure({ quiet_seconds: 0.2, protect_within_seconds: FAR });
    const directory = join(world.directory, "app");
    mkdirSync(directory);
    expect((await world.call(["protect", directory])).exit).toBe(0);
    await world.openPit();
    await world.call(["run", "app", "-d", ...sh("echo 1 > by-agent")]);
    await world.until("the end of the agent", () => world.state("app") === "finished");
    writeFileSync(join(directory, "finished"), "2\n");
    await world.until("a point after its end", async () => (await saved("app", "finished")) === "2\n");
    await world.call(["run", "app", "-d", ...sh("exec sleep 600")]);
    expect((await world.call(["stop", "app"])).exit).toBe(0);
    writeFileSync(join(directory, "stopped"), "3\n");
    await world.until("a point after the stop", async () => (await saved("app", "stopped")) === "3\n");
  });
});

describe("after the end of an agent", () => {
  it("nothing is reported as unsaved, also before the pit has looked again", async () => {
    await world.openPit();
    world.run(["run", "m1", "-d", ...sh("while [ ! -e end ]; do sleep 0.05; done")]);
    const file = join(world.home, "run", "live", "m1.json");
    await world.until("the pit to report on it", () => existsSync(file));
    const report = readFileSync(file);
    writeFileSync(join(worktree("m1"), "end"), "");
    await world.until("the end", () => world.state("m1") === "finished" && !existsSync(file));
    writeFileSync(file, report);
    expect((await status("m1")).live).toBe(null);
  });
});

describe("the checkpoint after the end of an agent", () => {
  it.each([
    ["a crash", "crash", "kill -9 $$"],
    ["a departure", "departure", "exit 0"],
  ])("holds the last changes after %s, also one that no watch sees", async (_, reason, end) => {
    configure({ quiet_seconds: 0.1, protect_within_seconds: FAR, revive: "no" });
    await world.call(["init", "m1"]);
    const at = (name: string) => join(worktree("m1"), name);
    writeFileSync(at("linked"), "before\n");
    linkSync(at("linked"), join(world.directory, "outside"));
    await world.openPit();
    await world.call(["run", "m1", "-d", ...sh(`while [ ! -e end ]; do sleep 0.05; done; ${end}`)]);
    // Files of the last two seconds are read again in any case.
    const old = performance.now() + 2500;
    for (let i = 0; performance.now() < old || i < 2; i += 1) {
      writeFileSync(at("tick"), `${i}\n`);
      await world.until("a point", async () => (await saved("m1", "tick")) === `${i}\n`);
    }
    await world.call(["set", "m1", `quiet_seconds=${FAR}`]);
    writeFileSync(join(world.directory, "outside"), "after\n");
    writeFileSync(at("end"), "change\n");
    await world.until("the checkpoint", () => world.checkpoints("m1").at(-1)?.reason === reason);
    expect([await saved("m1", "end"), await saved("m1", "linked")]).toEqual(["change\n", "after\n"]);
  });
});
