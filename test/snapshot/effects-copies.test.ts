// The effect history of a mission is copied with it: into forks, exports, imports, copied vaults, and back next to
// a cell whose disk was lost. Effects in it are not repeated there (INV-5).
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { describe, expect, it } from "vitest";
import { historyFile } from "../../src/effects/place.ts";
import { createExecutor, openCellRunStore } from "../../src/run/index.ts";
import { createScriptedModel } from "../../src/testing/index.ts";
import { createWorld, type World } from "../cli/hermetic.ts";

interface MailMission extends Disposable {
  readonly world: World;
  readonly checkpoint: string;
  lazarus(line: string): Promise<string>;
  /** Sends a mail through `flow once`; returns what it printed for people. */
  send(mission: string, home?: World): Promise<string>;
  mails(): number;
}

/** A mission that sent its mail after the checkpoint. */
async function createMailMission(): Promise<MailMission> {
  const world = createWorld();
  const outbox = world.path("outbox");
  const call = async (place: World, words: readonly string[]) => {
    const ended = await place.call(words);
    expect(ended.exit, ended.stderr).toBe(0);
    return ended;
  };
  const lazarus = async (line: string) => {
    const { stdout, stderr } = await call(world, line.split(" "));
    return stdout + stderr;
  };
  const send = async (mission: string, home = world) => {
    const root = join(home.missions, mission, "worktree");
    const words = `flow once -w report --key send --root ${root} -- sh -c`.split(" ");
    const { stderr } = await call(home, [...words, `echo mail >>${outbox}`]);
    return stderr;
  };
  const mails = () => (existsSync(outbox) ? readFileSync(outbox, "utf8").split("\n").length - 1 : 0);
  await lazarus("init m1");
  const root = join(world.missions, "m1", "worktree");
  await lazarus(`flow start -w report --agent anna --idempotency r1 --step send --root ${root}`);
  const checkpoint = (await call(world, ["checkpoint", "m1"])).stdout.trim();
  await send("m1");
  expect(mails()).toBe(1);
  return { world, checkpoint, lazarus, send, mails, [Symbol.dispose]: () => world[Symbol.dispose]() };
}

const LISTED = /done since that checkpoint, .*\n {2}flow report, "send" .*: done at /;

describe("a fork", () => {
  it("does not repeat what the original did, lists it, and reports its own identity", async () => {
    using origin = await createMailMission();
    const output = await origin.lazarus(`fork m1 m2 --at ${origin.checkpoint}`);
    expect(output).toMatch(LISTED);
    expect(output).toMatch(/a copy of the effect history of m1, and its own identity: .* end in @m2-\w{6}/);
    expect(await origin.send("m2")).toContain("was already done");
    expect(origin.mails()).toBe(1);
    expect(await origin.lazarus("status m2")).toContain("m2: done since the checkpoint");
    // A restore of its first checkpoint also takes it back to before the mail.
    const [first] = JSON.parse(await origin.lazarus("checkpoints m2 --json")).checkpoints;
    expect(await origin.lazarus(`restore m2 ${first.checkpoint_id}`)).toMatch(LISTED);
  });

  it("has its own keys for tool calls, and does not change the history of the original", async () => {
    using origin = await createMailMission();
    const { world } = origin;
    await origin.lazarus("checkpoint m1");
    const before = readFileSync(historyFile(join(world.missions, "m1")));
    const { effects_identity: identity } = JSON.parse(await origin.lazarus("fork m1 m2 --json"));
    const keys: string[] = [];
    await using store = openCellRunStore(join(world.missions, "m2"));
    const executor = createExecutor({
      model: createScriptedModel([{ tool: "send", input: { to: "anna" } }, "done"]),
      store,
    });
    const inputSchema = jsonSchema<object>({ type: "object" });
    const execute = (_: object, { effectId }: { effectId: string }) => void keys.push(effectId);
    const tools = { send: { inputSchema, effect: "once" as const, execute } };
    const { status } = await executor.run({ id: "mailer", tools }, "go", { runId: "r1" });
    expect({ status, keys }).toEqual({ status: "completed", keys: [`r1.1.0@${identity}`] });
    expect(readFileSync(historyFile(join(world.missions, "m1")))).toEqual(before);
  });
});

describe("an export", () => {
  it("carries the history to another home, and tar unpacks the cell and nothing else", async () => {
    using origin = await createMailMission();
    using home = createWorld();
    const archive = origin.world.path("m1.tar.gz");
    await origin.lazarus(`export m1 ${origin.checkpoint} -o ${archive}`);
    const unpacked = origin.world.path("unpacked");
    mkdirSync(unpacked);
    const tar = spawnSync("tar", ["xzf", archive, "-C", unpacked], { encoding: "utf8" });
    expect({ status: tar.status, stderr: tar.stderr }).toEqual({ status: 0, stderr: "" });
    expect(readdirSync(unpacked).sort()).toEqual(readdirSync(join(origin.world.missions, "m1")).sort());
    const imported = await home.call(["import", archive, "--mission", "m9"]);
    expect(imported.exit, imported.stderr).toBe(0);
    expect(imported.stderr).toMatch(LISTED);
    expect(await origin.send("m9", home)).toContain("was already done");
    expect(origin.mails()).toBe(1);
  });
});

describe("a vault", () => {
  it("carries the history when it is copied and imported", async () => {
    using origin = await createMailMission();
    using home = createWorld();
    await origin.lazarus("checkpoint m1");
    cpSync(join(origin.world.home, "vault", "m1"), home.path("copy"), { recursive: true });
    const imported = await home.call(["import", `${home.path("copy")}:${origin.checkpoint}`, "-m", "m9"]);
    expect(imported.exit, imported.stderr).toBe(0);
    expect(imported.stderr).toMatch(LISTED);
    expect(await origin.send("m9", home)).toContain("was already done");
    expect(origin.mails()).toBe(1);
  });

  it("brings back the history of a lost disk, completely or from where it was torn", async () => {
    using origin = await createMailMission();
    const { missions } = origin.world;
    await origin.lazarus("checkpoint m1");
    rmSync(missions, { recursive: true });
    expect(await origin.lazarus(`restore m1 ${origin.checkpoint}`)).toMatch(LISTED);
    expect(await origin.send("m1")).toContain("was already done");
    truncateSync(historyFile(join(missions, "m1")), 30);
    expect(await origin.lazarus(`restore m1 ${origin.checkpoint}`)).toMatch(LISTED);
    expect(await origin.send("m1")).toContain("was already done");
    expect(origin.mails()).toBe(1);
  });
});
