// The commands for a directory in place: protect, release, run --here and --in, init --worktree; what is refused, and
// the warnings about an agent in an unprotected directory.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { giveToPlainUser } from "../plain-user.ts";
import { listTree } from "../snapshot/list-tree.ts";
import { otherFileSystem } from "../snapshot/restore-world.ts";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const mission = () => (world.json("status --json").missions as Record<string, unknown>[])[0]!;

describe("protect", () => {
  it("saves a directory in place, under its name; a second call finds it protected", async () => {
    world.write("my app/file", "x");
    const { stderr, ...rest } = await world.call(["protect", world.path("my app")]);
    expect(rest).toEqual({ exit: 0, stdout: "my-app\n" });
    expect(stderr).toContain("later changes are saved only after one is started: lazarus pit");
    expect(readdirSync(world.path("my app"))).toEqual(["file"]);
    const again = JSON.parse((await world.call(["protect", world.path("my app"), "--json"])).stdout);
    expect(again).toMatchObject({
      mission_id: "my-app",
      worktree: world.path("my app"),
      change: "same",
      flaws: [],
    });
    expect(world.json("checkpoints my-app --json").checkpoints).toHaveLength(1);
    expect(mission()).toMatchObject({ worktree: world.path("my app"), unprotected: null });
  });

  it("recognizes a directory that was moved, and continues its mission there", async () => {
    world.write("app/file", "x");
    await world.call(["protect", world.path("app")]);
    renameSync(world.path("app"), world.path("renamed"));
    const lost = world.run(["checkpoints"], { cwd: world.path("renamed") });
    expect(lost).toMatchObject({ exit: 6, stdout: "" });
    expect(lost.stderr).toContain(`was the worktree of app at ${world.path("app")}`);
    expect(lost.stderr).toContain("try: lazarus protect . ");
    const found = world.run(["protect", ".", "--json"], { cwd: world.path("renamed") });
    expect(JSON.parse(found.stdout)).toMatchObject({ mission_id: "app", change: "moved" });
    // A copy is another directory, and so is a new one at the old path.
    cpSync(world.path("renamed"), world.path("app"), { recursive: true });
    const copy = await world.call(["protect", world.path("app"), "--json"]);
    expect(JSON.parse(copy.stdout)).toMatchObject({ mission_id: "app-2", change: "new" });
  });

  it("refuses with a reason and the next command", async () => {
    world.write("app/sub/file", "x");
    await world.call(["protect", world.path("app")]);
    for (const [directory, reason, next] of [
      ["/", "root of the file system", "choose"],
      [world.path("user"), "your home directory", "choose"],
      [world.directory, "contains your home directory", "choose"],
      [world.path("app/sub"), "is inside", "lazarus release app"],
      [world.home, "Lazarus keeps its own files", "choose"],
      [world.path("nowhere"), "there is no directory", "mkdir -p"],
    ] as const) {
      const { exit, stderr } = await world.call(["protect", directory, "--mission", "other"]);
      expect([6, 7]).toContain(exit);
      expect(stderr).toContain(reason);
      expect(stderr).toContain(next);
    }
    expect(existsSync(join(world.missions, "other"))).toBe(false);
  });

  it("refuses a directory that overlaps another mission's, which stays protected", async () => {
    world.write("src/app/sub/file", "x");
    expect((await world.call(["protect", world.path("src/app")])).exit).toBe(0);
    symlinkSync(world.path("src/app/sub"), world.path("link"));
    const before = listTree(world.path("src"));
    for (const [directory, reason] of [
      ["src/app", "the worktree of app"],
      ["src/app/sub", "is inside"],
      ["link", "is inside"],
      ["src", "contains"],
    ] as const)
      for (const words of [
        ["protect", world.path(directory), "--mission", "other"],
        ["init", "other", "--worktree", world.path(directory)],
        ["run", "other", "--in", world.path(directory), "--", "true"],
      ]) {
        const { exit, stderr } = await world.call(words);
        expect([exit, stderr], words.join(" ")).toEqual([7, expect.stringContaining(reason)]);
      }
    expect(existsSync(join(world.missions, "other"))).toBe(false);
    expect(listTree(world.path("src"))).toEqual(before);
    expect((await world.call(["restore", "app", "--to", world.path("restored")])).exit).toBe(0);
    expect(listTree(world.path("restored/worktree"))).toEqual(listTree(world.path("src/app")));
  });

  it("a record that cannot be read is an error that says how to recover", async () => {
    world.write("app/file", "x");
    await world.call(["protect", world.path("app")]);
    const record = world.write("home/missions/.lazarus-worktrees/app.json", "{");
    const { exit, stderr } = await world.call(["checkpoint", "app"]);
    expect(exit).toBe(8);
    expect(stderr).toContain(`rm ${record}, then: lazarus protect DIR --mission app`);
    expect(world.run(["heartbeat", "app"]).exit).toBe(0);
    expect(mission()).toMatchObject({ worktree_state: "unknown" });
    rmSync(record);
    expect(await world.call(["protect", world.path("app"), "--mission", "app"])).toMatchObject({ exit: 0 });
    expect((await world.call(["checkpoint", "app"])).exit).toBe(0);
  });

  it("is refused inside an agent, and so are release and init --worktree", async () => {
    const env = { LAZARUS_MISSION: "m", LAZARUS_EPOCH: "1" };
    await world.call(["protect", world.cwd]);
    for (const line of ["protect .", "release .", "init x --worktree ."])
      expect(world.run(line.split(" "), { env }).stderr).toContain("an agent cannot grant itself anything");
  });

  it("works for an ordinary user, next to the cell and on another file system", () => {
    const other = otherFileSystem();
    if (other === undefined) console.log("not tested on another file system: there is none that can be used");
    // Where others can write to the directory above it, files are staged inside.
    else chmodSync(other, 0o777);
    try {
      for (const [name, parent] of [
        ["near", world.directory],
        ...(other === undefined ? [] : [["far", other]]),
      ]) {
        const directory = join(parent!, name!);
        mkdirSync(join(directory, "below"), { recursive: true });
        writeFileSync(join(directory, "file"), "x");
        writeFileSync(join(directory, "below/file"), "y");
        giveToPlainUser(world.directory, directory);
        const lazarus = (...words: string[]) => world.run(words, { asPlainUser: true });
        expect(lazarus("protect", directory)).toMatchObject({ exit: 0, stdout: `${name}\n` });
        writeFileSync(join(directory, "file"), "changed");
        rmSync(join(directory, "below"), { recursive: true });
        const { exit, stderr } = lazarus("restore", name!);
        expect(exit, stderr).toBe(0);
        expect(readFileSync(join(directory, "file"), "utf8")).toBe("x");
        expect(readdirSync(directory).sort()).toEqual(["below", "file"]);
      }
    } finally {
      if (other !== undefined) rmSync(other, { recursive: true });
    }
  });
});

describe("run in place", () => {
  it("--here works in the current directory and restores it", async () => {
    writeFileSync(join(world.cwd, ".env"), "KEY=1");
    const first = world.run(["run", "--here", "--", "sh", "-c", "pwd; rm .env; echo new >new"]);
    expect(first).toMatchObject({ exit: 0, stdout: `${world.cwd}\n` });
    expect(first.stderr).toContain(`${world.cwd} is now the worktree of cwd`);
    const [baseline] = world.json("checkpoints cwd --json").checkpoints as { checkpoint_id: string }[];
    expect((await world.call(["restore", "cwd", baseline!.checkpoint_id])).exit).toBe(0);
    expect(readdirSync(world.cwd)).toEqual([".env"]);
    expect(readFileSync(join(world.cwd, ".env"), "utf8")).toBe("KEY=1");
    // The same mission again, without a message about the directory.
    const second = world.run(["run", "--here", "--", "true"]);
    expect(second.exit, second.stderr).toBe(0);
    expect(second.stderr).not.toContain("is now the worktree");
  });

  it("does not protect a directory for a program that does not exist", () => {
    world.write("app/x", "");
    const { exit, stderr } = world.run(["run", "--in", world.path("app"), "--", "./nosuch"]);
    expect({ exit, first: stderr.split("\n")[0] }).toEqual({
      exit: 127,
      first: 'error: cannot start the agent of app: the command "./nosuch" does not exist',
    });
    expect(world.json("status --json").missions).toEqual([]);
  });

  it("--in takes the mission's name, or the directory's by default", () => {
    mkdirSync(world.path("a"));
    mkdirSync(world.path("b"));
    expect(world.run(["run", "m", "--in", world.path("a"), "--", "pwd"]).stdout).toBe(`${world.path("a")}\n`);
    expect(world.run(["run", "--in", world.path("b"), "--", "pwd"]).stdout).toBe(`${world.path("b")}\n`);
    expect(readdirSync(world.missions).filter((name) => !name.startsWith("."))).toEqual(["b", "m"]);
    expect(world.run(["run", "m", "--", "pwd"]).stdout).toBe(`${world.path("a")}\n`);
    expect(world.run(["run", "m", "--in", world.path("b"), "--", "pwd"]).stderr).toContain(
      "the worktree of b",
    );
    expect(world.run(["run", "--", "pwd"]).exit).toBe(2);
  });

  it("revives an agent in its directory", () => {
    mkdirSync(world.path("a"));
    const script = 'echo life >>lives; [ "$(wc -l <lives)" -gt 1 ] || kill -9 $$';
    const { exit, stderr } = world.run([
      ...["run", "m", "--in", world.path("a"), "--revive", "yes", "--"],
      ...["sh", "-c", script],
    ]);
    expect(exit, stderr).toBe(0);
    expect(readFileSync(world.path("a/lives"), "utf8")).toBe("life\nlife\n");
    expect(readdirSync(world.path("a"))).toEqual(["lives"]);
  });

  it("--cwd warns on the first line about a directory that is not protected, and status says so", async () => {
    mkdirSync(world.path("loose"));
    const { stderr } = world.run(["run", "m", "--cwd", world.path("loose"), "--", "true"]);
    const next = `to protect it: lazarus run m --in ${world.path("loose")}`;
    expect(stderr.split("\n")[0]).toContain(`${world.path("loose")} is not protected`);
    expect(stderr.split("\n")[0]).toContain(next);
    expect(mission()).toMatchObject({ unprotected: world.path("loose") });
    const { stdout } = await world.call(["status"]);
    expect(stdout).toMatch(/^m .* unprotected /m);
    expect(stdout).toContain(next);
  });

  it("does not start an agent in a directory that took the place of the worktree", async () => {
    mkdirSync(world.path("a"));
    world.run(["run", "m", "--in", world.path("a"), "--", "true"]);
    renameSync(world.path("a"), world.path("moved"));
    expect((await world.call(["status"])).stdout).toContain("the worktree is missing");
    mkdirSync(world.path("a"));
    writeFileSync(world.path("a/other"), "x");
    expect((await world.call(["status"])).stdout).toContain("the worktree was replaced");
    const { exit, stderr } = world.run(["run", "m", "--no-baseline", "--", "sh", "-c", "touch started"]);
    expect(exit).not.toBe(0);
    expect(stderr).toContain("lazarus protect NEWDIR --mission m");
    expect(readdirSync(world.path("a"))).toEqual(["other"]);
    expect((await world.call(["protect", world.path("moved"), "--mission", "m"])).exit).toBe(0);
    expect(world.run(["run", "m", "--", "pwd"]).stdout).toBe(`${world.path("moved")}\n`);
  });

  it("does not repeat at-most-once commands after a restore, because their history is not restored", async () => {
    const once = 'lazarus flow once -w w --key k -- sh -c "echo sent >>../sent"';
    const start = "lazarus flow start -w w --agent a --idempotency i --step s";
    expect(world.shell(`${start} && lazarus protect . && ${once}`).exit).toBe(0);
    const [first] = world.json("checkpoints cwd --json").checkpoints as { checkpoint_id: string }[];
    expect((await world.call(["restore", "cwd", first!.checkpoint_id])).exit).toBe(0);
    const again = world.shell(once);
    expect(again.stderr).toContain("was already done");
    expect(readFileSync(world.path("sent"), "utf8")).toBe("sent\n");
  });
});

describe("release", () => {
  it("leaves the directory and the checkpoints, by directory or mission", async () => {
    world.write("app/file", "x");
    for (const name of [world.path("app"), "app"]) {
      await world.call(["protect", world.path("app")]);
      const { exit, stdout, stderr } = await world.call(["release", name]);
      expect({ exit, stdout }).toEqual({ exit: 0, stdout: `${world.path("app")}\n` });
      expect(stderr).toContain("lazarus restore app --to DIR");
    }
    expect(readdirSync(world.path("app"))).toEqual(["file"]);
    await world.call(["protect", world.path("app")]);
    expect(world.run(["release"], { cwd: world.path("app") })).toMatchObject({ exit: 0 });
    expect(await world.call(["checkpoint", "app"])).toMatchObject({ exit: 7 });
    expect((await world.call(["release", "app"])).exit).toBe(6);
    expect((await world.call(["restore", "app", "--to", world.path("copy")])).exit).toBe(0);
    expect(readFileSync(world.path("copy/worktree/file"), "utf8")).toBe("x");
  });
});

describe("init --worktree", () => {
  it("uses a directory in place", async () => {
    world.write("app/file", "x");
    const { exit, stderr } = await world.call(["init", "m", "--worktree", world.path("app")]);
    expect({ exit, stderr }).toMatchObject({ exit: 0 });
    expect(JSON.parse(world.read("home/missions/m/config/cell.json")).worktree).toBe(world.path("app"));
    expect(world.json("checkpoint m --json").counts).toMatchObject({ files: 5 });
  });

  it("is inactive, not stale, while nothing sends heartbeats", async () => {
    await world.call(["init", "m", "--worktree", world.cwd]);
    const file = "home/missions/m/state/heartbeat.json";
    world.write(file, JSON.stringify({ ...JSON.parse(world.read(file)), timestamp: 1 }));
    expect(world.json("scan --json").cells).toMatchObject([{ status: "inactive" }]);
  });
});

it.skipIf(process.platform !== "linux")(
  "a directory of two homes: nothing is restored or started under the agent of the other one",
  async () => {
    const directory = world.path("app");
    world.write("app/file", "first");
    await world.call(["protect", directory]);
    world.write("app/file", "second");
    expect((await world.call(["restore", "app"])).exit).toBe(0);
    world.write("app/file", "second");
    const other = { env: { LAZARUS_HOME: world.path("other") } };
    const script = "touch working; while [ -e working ]; do sleep 0.05; done";
    const agent = world.run(
      ["run", "theirs", "--in", directory, "--detach", "--", "sh", "-c", script],
      other,
    );
    expect(agent.exit).toBe(0);
    while (!existsSync(join(directory, "working"))) await delay(20);
    const theirs = `an agent of mission theirs of ${world.path("other", "missions")} \\(process \\d+\\) works in ${directory}`;
    for (const words of [
      ["restore", "app"],
      ["restore", "app", "--stop"],
      ["undo", "app"],
    ]) {
      const { exit, stderr } = world.run(words);
      expect([words, exit]).toEqual([words, 10]);
      expect(stderr).toMatch(new RegExp(`${theirs}, so nothing of app was restored`));
    }
    const started = world.run(["run", "app", "--", "touch", "started"]);
    expect(started.exit).not.toBe(0);
    expect(started.stderr).toMatch(new RegExp(theirs));
    expect(readdirSync(directory).sort()).toEqual(["file", "working"]);
    expect(world.read("app/file")).toBe("second");
    // Reading is harmless, and so is a restore elsewhere.
    expect((await world.call(["checkpoint", "app"])).exit).toBe(0);
    expect((await world.call(["restore", "app", "--to", world.path("copy")])).exit).toBe(0);
    expect(world.run(["stop", "theirs"], other).exit).toBe(0);
    expect(world.run(["run", "app", "--", "touch", "started"]).exit).toBe(0);
    expect(existsSync(join(directory, "started"))).toBe(true);
  },
);
