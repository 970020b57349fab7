// `lazarus checkpoint` through the running pit, and without it where the pit cannot take it: the same output, exit code and files.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { askRaw } from "../http/test-server.ts";
import { removeTree } from "../snapshot/lab.ts";
import { listTree } from "../snapshot/list-tree.ts";
import { createFiles, HOSTILE_CHANGES } from "./hostile-changes.ts";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
let pit: Awaited<ReturnType<PitWorld["openPit"]>>;

/** Far away: no live point comes between two commands. */
const FAR = 3600;

beforeEach(async () => {
  world = createPitWorld();
  writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit: { quiet_seconds: 0.1 } }));
  pit = await world.openPit();
  await world.call(["run", "m1", "-d", "--", "sh", "-c", "exec sleep 600"]);
  await world.until("the first point", async () => (await status()).live?.unsaved_since_ms === null);
  await world.call(["set", "m1", `quiet_seconds=${FAR}`, `protect_within_seconds=${FAR}`]);
  await world.until("the socket", () => readFileSync(addressFile(), "utf8") !== "");
});
afterEach(() => world.close());

const addressFile = () => join(world.home, "run", "http.json");
const worktree = (path = "") => join(world.missions, "m1", "worktree", path);
const status = async () => JSON.parse((await world.call(["status", "m1", "--json"])).stdout).missions[0];

/** How many checkpoints the pit has taken for others. */
async function served(): Promise<number> {
  const { body } = await askRaw({
    socketPath: join(world.home, "run", "pit.sock"),
    path: "/metrics",
    headers: { host: "localhost" },
  });
  const route = 'route="post /v1/missions/{mission}/checkpoints",status="2xx"';
  const line = body.split("\n").find((each) => each.includes("_count{") && each.includes(route));
  return Number(line?.split(" ").at(-1) ?? 0);
}

function checkpoint(...words: string[]) {
  const { exit, stdout, stderr } = world.run(["checkpoint", "m1", "--json", ...words]);
  return { exit, stderr, document: JSON.parse(stdout) };
}

async function checkpointByPit(...words: string[]) {
  const before = await served();
  const result = checkpoint(...words);
  expect(await served()).toBe(before + 1);
  return result;
}

/** What a command without a pit would report: with an environment that differs from the pit's, the command takes it itself. */
function checkpointWithoutPit(...words: string[]) {
  const env = { XDG_CONFIG_HOME: join(world.directory, "other") };
  const { exit, stdout, stderr } = world.run(["checkpoint", "m1", "--json", ...words], { env });
  return { exit, stderr, document: JSON.parse(stdout) };
}

/** The files of a checkpoint, as an independent lister sees them after a restore. */
async function listSaved(id: string): Promise<string[]> {
  const directory = join(world.directory, `restored-${id}`);
  expect((await world.call(["restore", "m1", id, "--to", directory])).exit).toBe(0);
  return listTree(directory);
}

/** The files of a checkpoint's worktree, without the rest of the cell. */
async function listWorktree(id: string): Promise<string[]> {
  const directory = join(world.directory, `restored-${id}`);
  const { exit, stderr } = await world.call(["restore", "m1", id, "--to", directory]);
  expect([exit, stderr]).toEqual([0, expect.anything()]);
  const lines = listTree(join(directory, "worktree"));
  removeTree(directory);
  return lines;
}

/** Without what the agent's keeper and the commands themselves write. */
function listCell(): string[] {
  return listTree(join(world.missions, "m1"));
}

describe("through the pit", () => {
  it("a checkpoint has the same files as the cell, and the same report as a walk", async () => {
    mkdirSync(worktree("a/b"), { recursive: true });
    writeFileSync(worktree("a/b/new"), "1\n");
    writeFileSync(worktree("one"), "1\n");
    const first = await checkpointByPit("-m", "first");
    expect(first).toMatchObject({ exit: 0, stderr: "" });
    const inWorktree = (lines: string[]) => lines.filter((line) => line.includes('"path": "worktree'));
    expect(inWorktree(await listSaved(first.document.checkpoint_id))).toEqual(inWorktree(listCell()));

    renameSync(worktree("a"), worktree("c"));
    rmSync(worktree("one"));
    writeFileSync(worktree("c/b/new"), "22\n");
    chmodSync(worktree("c/b"), 0o700);
    const second = await checkpointByPit();
    expect(inWorktree(await listSaved(second.document.checkpoint_id))).toEqual(inWorktree(listCell()));
    // A walk finds nothing in the worktree that it did not save.
    const alone = checkpointWithoutPit();
    const changed = JSON.parse(
      (
        await world.call([
          "diff",
          "m1",
          second.document.checkpoint_id,
          alone.document.checkpoint_id,
          "--json",
        ])
      ).stdout,
    ).changes.map(({ path }: { path: string }) => path);
    expect(changed.filter((path: string) => /^worktree(\/(?!\.git))/.test(path))).toEqual([]);
    expect(Object.keys(second.document)).toEqual(Object.keys(alone.document));
    expect((await world.call(["show", "m1", first.document.checkpoint_id])).stdout).toContain("first");
  });

  it("after every hostile change, the listing equals the worktree and the listing of a walk", async () => {
    createFiles(worktree());
    await checkpointByPit();
    for (const [name, change] of HOSTILE_CHANGES) {
      change(worktree());
      const [{ document: byPit }, now] = [await checkpointByPit(), listTree(worktree())];
      const { document: byWalk } = checkpointWithoutPit();
      const [pit, walk] = await Promise.all(
        [byPit, byWalk].map((document) => listWorktree(document.checkpoint_id)),
      );
      expect(pit, name).toEqual(now);
      expect(walk, name).toEqual(now);
    }
  }, 300_000);

  it("flaws and exit code are those of a walk", async () => {
    const script = `require("net").createServer().listen("s.sock", () => process.send("ready"))`;
    const server = spawn(process.execPath, ["-e", script], {
      cwd: worktree(),
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    onTestFinished(() => void server.kill("SIGKILL"));
    await once(server, "message");
    const [one, two] = [await checkpointByPit(), checkpointWithoutPit()];
    expect(one.exit).toBe(5);
    expect([two.exit, two.document.flaws]).toEqual([one.exit, one.document.flaws]);
    expect(one.document.flaws).toMatchObject([{ path: "worktree/s.sock", kind: "skipped" }]);
    const human = await world.call(["checkpoint", "m1"]);
    expect([human.exit, human.stderr]).toEqual([5, expect.stringContaining("worktree/s.sock: a socket")]);
  });

  it("nothing is left unsaved", async () => {
    writeFileSync(worktree("file"), "x");
    await checkpointByPit();
    // The pit itself may have written to the cell in the meantime, about the agent that has just been started.
    await world.until("nothing unsaved", async () => {
      return (await status()).live.unsaved_since_ms === null || checkpoint().exit !== 0;
    });
    expect((await status()).live.unsaved_since_ms).toBe(null);
  });
});

describe("without the pit, when it", () => {
  const expectOwnCheckpoint = (...words: string[]) => {
    writeFileSync(worktree("file"), `${process.hrtime.bigint()}`);
    expect(checkpoint(...words)).toMatchObject({ exit: 0, document: { outcome: "captured" } });
    expect(world.run(["cat", "m1", "worktree/file"]).stdout).toBe(readFileSync(worktree("file"), "utf8"));
  };

  it("is stopped by a signal", async () => {
    process.kill(pit.pid!, "SIGSTOP");
    expectOwnCheckpoint();
    process.kill(pit.pid!, "SIGCONT");
    expect(await served()).toBe(0);
  });

  it("is gone, and its address is left", async () => {
    const address = readFileSync(addressFile());
    pit.kill("SIGKILL");
    await once(pit, "exit");
    writeFileSync(addressFile(), address);
    expectOwnCheckpoint();
  });

  it("is of another version", async () => {
    const address = JSON.parse(readFileSync(addressFile(), "utf8"));
    writeFileSync(addressFile(), JSON.stringify({ ...address, caller: "another" }));
    expectOwnCheckpoint();
    expect(await served()).toBe(0);
  });

  it("has another configuration", async () => {
    const file = join(world.directory, "other.json");
    writeFileSync(file, JSON.stringify({ snapshot: { exclude: ["skip"] } }));
    expectOwnCheckpoint("--config", file);
    expect(await served()).toBe(0);
  });

  it("refuses the token", async () => {
    writeFileSync(join(world.home, "run", "token"), `${"x".repeat(43)}\n`);
    expectOwnCheckpoint();
    expect(await served()).toBe(0);
  });

  it("does not watch the mission", async () => {
    await world.call(["set", "m1", "live", "off"]);
    await world.until("the pit to see it", async () => (await status()).live === null);
    expectOwnCheckpoint();
    expect(await served()).toBe(0);
  });
});
