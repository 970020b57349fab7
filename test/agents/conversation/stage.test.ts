// The conversation in every checkpoint: what is copied, how much it costs, and what becomes a flaw.
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listStaged, openStagedTree } from "../../../src/agents/conversation/staged.ts";
import { appendHookLine } from "../../../src/agents/hook-lines.ts";
import { readSession } from "../../../src/agents/session.ts";
import { agentDirectory } from "../../../src/cell/fence.ts";
import { systemMachine } from "../../../src/platform/machine.ts";
import {
  type ConversationWorld,
  createConversation,
  promptLine,
  replaceWhole,
  SESSION,
  stepLines,
} from "./world.ts";

let world: ConversationWorld;
beforeEach(() => {
  world = createConversation();
});
afterEach(() => world[Symbol.dispose]());

/** The text of the copy, by name. */
function copies(): Record<string, string> {
  const files = listStaged(openStagedTree(world.cell), "claude");
  return Object.fromEntries(files.map((file) => [file.name, file.read().toString("utf8")]));
}

const copied = () => copies()[`${SESSION}.jsonl`];
const partNames = () => fs.readdirSync(world.path(`conversation/claude/${SESSION}.jsonl.parts`)).sort();
const positionOf = async () => (await world.checkpoint()).checkpoint.metadata.conversation;

describe("the copy of a conversation", () => {
  it("has what was appended, and the checkpoint names the turn", async () => {
    world.append(promptLine("write a book", world.path("worktree")));
    world.work(1);
    expect(await positionOf()).toEqual({
      adapter: "claude",
      session: SESSION,
      turn: 1,
      last: { tool: "Bash", summary: "write chapter 1" },
    });
    world.work(2);
    expect(await positionOf()).toMatchObject({ turn: 2, last: { summary: "write chapter 2" } });
    expect(copied()).toBe(world.read());
    expect(partNames()).toHaveLength(2);
  });

  it("has whole lines only: a cut one waits", async () => {
    const lines = stepLines(1, "/w");
    world.append(lines.slice(0, -10));
    await world.checkpoint();
    expect(copied()).toBe(`${lines.split("\n")[0]}\n`);
    world.append(lines.slice(-10));
    const { flaws } = await world.checkpoint();
    expect(copied()).toBe(lines);
    expect(flaws).toEqual([]);
  });

  it.each([
    ["truncated", () => fs.truncateSync(world.transcript(), 0)],
    ["replaced", () => replaceWhole(world.transcript(), stepLines(9, "/other"))],
    [
      "rewritten in place",
      () => fs.writeFileSync(world.transcript(), stepLines(7, "/elsewhere") + stepLines(8, "/elsewhere")),
    ],
  ])("is copied again in full after the file was %s", async (_, change) => {
    world.work(1);
    await world.checkpoint();
    change();
    world.append(stepLines(3, "/w"));
    const position = await positionOf();
    expect(copied()).toBe(world.read());
    expect(position?.last?.summary).toBe("write chapter 3");
  });

  it.each([
    ["emptied", () => fs.truncateSync(world.transcript(), 0)],
    ["cut", () => fs.truncateSync(world.transcript(), stepLines(1, "/w").length + 30)],
  ])("is kept when the file was %s, which is reported, even without the cache", async (_, damage) => {
    world.append(stepLines(1, "/w") + stepLines(2, "/w"));
    await world.checkpoint();
    const before = copied();
    damage();
    for (const isForgotten of [false, true]) {
      if (isForgotten) fs.rmSync(world.context.cacheDirectory, { recursive: true });
      const { flaws, checkpoint } = await world.checkpoint();
      expect(flaws).toMatchObject([{ kind: "degraded", reason: expect.stringContaining("become shorter") }]);
      expect(copied()).toBe(before);
      expect(checkpoint.metadata.conversation?.turn).toBe(2);
    }
  });

  it("survives the loss of the cache, and stores nothing again", async () => {
    for (let step = 1; step <= 3; step += 1) {
      world.work(step);
      await world.checkpoint();
    }
    const before = partNames();
    fs.rmSync(world.context.cacheDirectory, { recursive: true });
    expect((await world.checkpoint()).outcome).toBe("unchanged");
    expect(partNames()).toEqual(before);
  });

  it("is repaired after an agent changed or removed it", async () => {
    world.work(1);
    await world.checkpoint();
    const [part] = partNames();
    fs.writeFileSync(world.path(`conversation/claude/${SESSION}.jsonl.parts/${part}`), "forged\n");
    await world.checkpoint();
    expect(copied()).toBe(world.read());
    fs.rmSync(world.path("conversation/claude"), { recursive: true });
    await world.checkpoint();
    expect(copied()).toBe(world.read());
  });

  it("redacts secrets, in lines that stay valid JSON, and leaves the agent's file alone", async () => {
    const token = ["ghp", "abcdefghijklmnopqrstuvwxyz0123456789"].join("_");
    world.append(stepLines(1, "/w", `export GITHUB_TOKEN=${token}\nok`) + stepLines(2, "/w"));
    await world.checkpoint();
    expect(copied()).not.toContain(token);
    expect(copied()).toContain("[redacted: ");
    const lines = copied()!.split("\n").slice(0, -1);
    expect(lines.map((line) => JSON.parse(line).type)).toEqual(["assistant", "user", "assistant", "user"]);
    expect(lines.slice(2)).toEqual(stepLines(2, "/w").split("\n").slice(0, -1));
    expect(world.read()).toContain(token);
    world.append(stepLines(3, "/w"));
    await world.checkpoint();
    expect(copied()!.endsWith(stepLines(3, "/w"))).toBe(true);
    expect(partNames()).toHaveLength(2);
  });

  it("has the files of subagents and tool results, and drops those that are gone", async () => {
    world.work(1);
    const directory = world.transcript().replace(/\.jsonl$/, "");
    fs.mkdirSync(join(directory, "subagents"), { recursive: true });
    fs.mkdirSync(join(directory, "tool-results"), { recursive: true });
    fs.writeFileSync(join(directory, "subagents/agent-1.jsonl"), stepLines(5, "/w"));
    fs.writeFileSync(join(directory, "tool-results/x.txt"), "a long result");
    expect((await positionOf())?.turn).toBe(1);
    expect(Object.keys(copies())).toEqual([
      `${SESSION}.jsonl`,
      `${SESSION}/subagents/agent-1.jsonl`,
      `${SESSION}/tool-results/x.txt`,
    ]);
    fs.rmSync(join(directory, "tool-results/x.txt"));
    await world.checkpoint();
    expect(Object.keys(copies())).toHaveLength(2);
  });
});

describe("flaws instead of failures", () => {
  it("damaged lines", async () => {
    world.work(1);
    world.append("{ not json\n");
    const { flaws } = await world.checkpoint();
    expect(flaws).toEqual([
      { path: "conversation/claude", kind: "degraded", reason: "damaged lines in the transcript: 1" },
    ]);
  });

  it("a transcript behind a link is not read", async () => {
    fs.mkdirSync(join(world.transcript(), ".."), { recursive: true });
    fs.writeFileSync(join(world.directory, "secret"), stepLines(1, "/w"));
    fs.symlinkSync(join(world.directory, "secret"), world.transcript());
    const { flaws } = await world.checkpoint();
    expect(flaws).toMatchObject([
      { kind: "skipped", reason: expect.stringContaining("a symbolic link is on its path") },
    ]);
    expect(copies()).toEqual({});
  });

  it("a link in the cell in place of the copy is not written through", async () => {
    world.work(1);
    fs.mkdirSync(join(world.directory, "elsewhere"));
    fs.symlinkSync(join(world.directory, "elsewhere"), world.path("conversation/claude"));
    const { flaws } = await world.checkpoint();
    expect(flaws.some(({ reason }) => reason.includes("is not a directory"))).toBe(true);
    expect(fs.readdirSync(join(world.directory, "elsewhere"))).toEqual([]);
  });

  it("files that are gone: the last copy is kept", async () => {
    world.work(1);
    await world.checkpoint();
    const before = copied();
    fs.rmSync(world.transcript());
    const { flaws, checkpoint } = await world.checkpoint();
    expect(flaws).toMatchObject([{ reason: expect.stringContaining("are gone; the last copy is kept") }]);
    expect(copied()).toBe(before);
    expect(checkpoint.metadata.conversation?.turn).toBe(1);
  });

  it("an unknown adapter, and a damaged session.json", async () => {
    const file = world.path("conversation/session.json");
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("claude", "later"));
    expect((await world.checkpoint()).flaws).toMatchObject([
      { reason: expect.stringContaining('no adapter "later"') },
    ]);
    fs.writeFileSync(file, "{");
    expect((await world.checkpoint()).flaws).toMatchObject([
      { reason: expect.stringContaining("is damaged") },
    ]);
  });
});

describe("the session", () => {
  it("is the newest of the directory when none was chosen", async () => {
    world[Symbol.dispose]();
    world = createConversation(undefined, null);
    expect((await world.checkpoint()).checkpoint.metadata.conversation).toBeUndefined();
    world.work(1);
    expect((await positionOf())?.session).toBe(SESSION);
    expect(readSession(world.cell)?.session).toBe(SESSION);
  });

  it("follows what a hook of the current life reports", async () => {
    world.work(1);
    await world.checkpoint();
    const other = SESSION.replace(/^1/, "9");
    const directory = agentDirectory(world.context.config, "m");
    fs.writeFileSync(join(directory, "epoch"), "1");
    appendHookLine(systemMachine, directory, {
      at_ms: 1,
      epoch: 1,
      kind: "session",
      session: other,
      transcript: null,
    });
    world.append(stepLines(4, "/w"), other);
    expect(await positionOf()).toMatchObject({ session: other, last: { summary: "write chapter 4" } });
    expect(Object.keys(copies())).toEqual([`${other}.jsonl`]);
  });
});

it("a mission without an adapter has no directory for it", async () => {
  fs.rmSync(world.path("conversation"), { recursive: true });
  const { flaws, checkpoint } = await world.checkpoint();
  expect(flaws).toEqual([]);
  expect(checkpoint.metadata.conversation).toBeUndefined();
  expect(fs.existsSync(world.path("conversation"))).toBe(false);
});
