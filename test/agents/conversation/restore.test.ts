// Files and conversation are restored together: restore, undo, only one of them, and what is refused.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Adapter } from "../../../src/agents/adapter.ts";
import { readSession } from "../../../src/agents/session.ts";
import { agentDirectory } from "../../../src/cell/fence.ts";
import { takeCheckpoint } from "../../../src/snapshot/operations/checkpoint.ts";
import { previewRestore, restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../../src/snapshot/operations/undo.ts";
import {
  type ConversationWorld,
  createConversation,
  databaseAgent,
  promptLine,
  SESSION,
  stepLines,
} from "./world.ts";

let world: ConversationWorld;
beforeEach(() => {
  world = createConversation();
  world.append(promptLine("write a book", world.path("worktree")));
});
afterEach(() => world[Symbol.dispose]());

const chapters = () => fs.readdirSync(world.path("worktree")).sort();
const steps = () => (world.read()?.match(/"toolu_\d+"/g)?.length ?? 0) / 2;

/** Checkpoints after steps 1 to `count`, by step. */
async function workSteps(count: number): Promise<string[]> {
  const ids = [""];
  for (let step = 1; step <= count; step += 1) {
    world.work(step);
    ids.push((await world.checkpoint()).ref.id);
  }
  return ids;
}

describe("restore", () => {
  it("puts files and conversation at the same step, and undo brings both back", async () => {
    const ids = await workSteps(5);
    const after = world.read();
    const result = await restoreCell(world.context, { checkpoint: ids[2] });
    expect(chapters()).toEqual(["chapter-1.md", "chapter-2.md"]);
    expect(steps()).toBe(2);
    expect(after?.startsWith(world.read()!)).toBe(true);
    expect(result.flaws).toEqual([]);
    expect(result.moves).toEqual([
      "the conversation goes back from turn 5, after Bash: write chapter 5 to turn 2, after Bash: write chapter 2",
    ]);
    await undoRestore(world.context);
    expect(chapters()).toHaveLength(5);
    expect(world.read()).toBe(after);
    await undoRestore(world.context);
    expect(steps()).toBe(2);
  });

  it("continues from there: the next checkpoint reads only what was appended", async () => {
    const ids = await workSteps(3);
    await restoreCell(world.context, { checkpoint: ids[1] });
    world.append(stepLines(7, world.path("worktree")));
    const { checkpoint, flaws } = await world.checkpoint();
    expect(flaws).toEqual([]);
    expect(checkpoint.metadata.conversation).toMatchObject({ turn: 2, last: { summary: "write chapter 7" } });
    await restoreCell(world.context, { checkpoint: ids[3] });
    expect(steps()).toBe(3);
    await restoreCell(world.context, { checkpoint: checkpoint.ref.id });
    expect(world.read()).toContain("toolu_7");
    expect(steps()).toBe(2);
  });

  it("writes private files, and keeps the mode of one that exists", async () => {
    const ids = await workSteps(2);
    fs.chmodSync(world.transcript(), 0o640);
    await restoreCell(world.context, { checkpoint: ids[1] });
    expect(fs.statSync(world.transcript()).mode & 0o777).toBe(0o640);
    await world.checkpoint();
    fs.rmSync(join(world.home, ".claude"), { recursive: true });
    const { flaws } = await restoreCell(world.context, { checkpoint: ids[1] });
    expect(flaws).toEqual([]);
    expect(fs.statSync(world.transcript()).mode & 0o777).toBe(0o600);
    expect(fs.statSync(join(world.home, ".claude")).mode & 0o777).toBe(0o700);
    expect(steps()).toBe(1);
  });

  it("to a point before the session existed removes the transcript, and undo brings it back", async () => {
    fs.rmSync(world.transcript());
    fs.rmSync(world.path("conversation"), { recursive: true });
    const first = await world.checkpoint();
    expect(first.checkpoint.metadata.conversation).toBeUndefined();
    createConversation(world.directory);
    world.work(1);
    await world.checkpoint();
    const directory = world.transcript().replace(/\.jsonl$/, "");
    fs.mkdirSync(join(directory, "subagents"), { recursive: true });
    fs.writeFileSync(join(directory, "subagents/agent-1.jsonl"), stepLines(5, "/w"));
    const text = world.read();
    const { moves, flaws } = await restoreCell(world.context, { checkpoint: first.ref.id });
    expect(flaws).toEqual([]);
    expect(moves).toContain("the conversation is removed: it is not in the checkpoint");
    expect(world.read()).toBeUndefined();
    expect(fs.existsSync(join(directory, "subagents/agent-1.jsonl"))).toBe(false);
    await undoRestore(world.context);
    expect(world.read()).toBe(text);
    expect(fs.readFileSync(join(directory, "subagents/agent-1.jsonl"), "utf8")).toBe(stepLines(5, "/w"));
  });

  it("touches no other session of the directory", async () => {
    const other = SESSION.replace(/^1/, "9");
    const ids = await workSteps(2);
    world.append("somebody else's\n", other);
    await restoreCell(world.context, { checkpoint: ids[1] });
    expect(world.read(other)).toBe("somebody else's\n");
  });

  it("of a cell that is gone moves a newer transcript aside", async () => {
    const ids = await workSteps(2);
    world.work(3);
    const newer = world.read();
    fs.rmSync(world.cell, { recursive: true });
    const { flaws } = await restoreCell(world.context, { checkpoint: ids[1] });
    expect(steps()).toBe(1);
    expect(flaws).toMatchObject([{ kind: "degraded", reason: expect.stringContaining("was moved to") }]);
    const aside = fs
      .readdirSync(join(world.transcript(), ".."))
      .filter((name) => name.includes(".lazarus-aside-"));
    expect(aside).toHaveLength(1);
    expect(fs.readFileSync(join(world.transcript(), "..", aside[0]!), "utf8")).toBe(newer);
  });

  it("on a machine where the agent was never started writes nothing into the home", async () => {
    const ids = await workSteps(2);
    fs.rmSync(agentDirectory(world.context.config, "m"), { recursive: true });
    fs.rmSync(join(world.home, ".claude"), { recursive: true });
    await restoreCell(world.context, { checkpoint: ids[1] });
    expect(fs.existsSync(join(world.home, ".claude"))).toBe(false);
    expect(readSession(world.cell)?.session).toBe(SESSION);
  });
});

describe("files or conversation alone", () => {
  it("only the files, and the undo of that", async () => {
    const ids = await workSteps(3);
    await restoreCell(world.context, { checkpoint: ids[1], part: "files" });
    expect(chapters()).toEqual(["chapter-1.md"]);
    expect(steps()).toBe(3);
    world.append(stepLines(4, world.path("worktree")));
    await undoRestore(world.context);
    expect(chapters()).toHaveLength(3);
    expect(steps()).toBe(4);
  });

  it("only the conversation, and the undo of that", async () => {
    const ids = await workSteps(3);
    await restoreCell(world.context, { checkpoint: ids[1], part: "conversation" });
    expect(chapters()).toHaveLength(3);
    expect(steps()).toBe(1);
    await undoRestore(world.context);
    expect(steps()).toBe(3);
    await expect(restoreCell(world.context, { part: "files", paths: ["worktree"] })).rejects.toThrow(
      "a restore of the files only cannot be limited to single paths",
    );
  });

  it("single paths leave the conversation alone", async () => {
    const ids = await workSteps(2);
    await restoreCell(world.context, { checkpoint: ids[1], paths: ["worktree"] });
    expect(steps()).toBe(2);
  });
});

describe("refused or contained", () => {
  it("a transcript that another process has open for writing", async () => {
    const ids = await workSteps(2);
    const script =
      'const fd = require("fs").openSync(process.argv[1], "a"); console.log(fd); setInterval(() => {}, 1e6)';
    const writer = spawn(process.execPath, ["-e", script, world.transcript()], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await once(writer.stdout, "data");
      await expect(restoreCell(world.context, { checkpoint: ids[1] })).rejects.toMatchObject({
        code: "CELL_IN_USE",
      });
      expect(chapters()).toHaveLength(2);
      await restoreCell(world.context, { checkpoint: ids[1], part: "files" });
      expect(chapters()).toHaveLength(1);
    } finally {
      writer.kill("SIGKILL");
    }
  });

  it("names that the agent never uses, in a copy from elsewhere", async () => {
    await workSteps(1);
    const directory = agentDirectory(world.context.config, "m");
    const place = fs.readFileSync(join(directory, "place.json"));
    fs.rmSync(join(directory, "place.json"));
    for (const name of [".bashrc", `${SESSION}/.credentials.json`, "sub/x.jsonl"])
      world.write(`conversation/claude/${name}`, "x");
    const { ref } = await world.checkpoint();
    fs.writeFileSync(join(directory, "place.json"), place);
    fs.rmSync(join(world.home, ".claude"), { recursive: true });
    const { flaws } = await restoreCell(world.context, { checkpoint: ref.id });
    expect(steps()).toBe(1);
    expect(flaws.map(({ reason }) => reason)).toEqual(
      Array(3).fill("not put back: the agent does not use a file of this name"),
    );
    expect(fs.readdirSync(world.home)).toEqual([".claude"]);
    expect(fs.readdirSync(join(world.transcript(), ".."))).toEqual([`${SESSION}.jsonl`]);
  });

  it("a symbolic link on the path", async () => {
    const ids = await workSteps(2);
    const elsewhere = join(world.directory, "elsewhere");
    fs.mkdirSync(elsewhere);
    const project = join(world.transcript(), "..");
    fs.rmSync(project, { recursive: true });
    fs.symlinkSync(elsewhere, project);
    const { flaws } = await restoreCell(world.context, { checkpoint: ids[1] });
    expect(flaws).toMatchObject([{ reason: expect.stringContaining("a symbolic link is on its path") }]);
    expect(fs.readdirSync(elsewhere)).toEqual([]);
    expect(chapters()).toHaveLength(1);
  });

  it("a link in place of the transcript is moved aside, and what it leads to stays as it was", async () => {
    const ids = await workSteps(2);
    const elsewhere = join(world.directory, "elsewhere");
    fs.renameSync(world.transcript(), elsewhere);
    const before = fs.readFileSync(elsewhere, "utf8");
    fs.symlinkSync(elsewhere, world.transcript());
    const { flaws } = await restoreCell(world.context, { checkpoint: ids[1] });
    expect(steps()).toBe(1);
    expect(flaws).toMatchObject([
      { reason: expect.stringMatching(/is in no checkpoint and was moved to .*\.lazarus-aside-/) },
    ]);
    expect(fs.readFileSync(elsewhere, "utf8")).toBe(before);
  });

  it("a preview names the turn and writes nothing", async () => {
    const ids = await workSteps(2);
    const before = world.read();
    const { conversation } = await previewRestore(world.context, { checkpoint: ids[1] });
    expect(conversation).toMatchObject({ turn: 1, last: { tool: "Bash", summary: "write chapter 1" } });
    expect(world.read()).toBe(before);
  });
});

it("a database that other sessions are in is neither copied nor touched", async () => {
  const path = join(world.home, ".databases", `${SESSION}.db`);
  fs.mkdirSync(join(path, ".."), { recursive: true });
  fs.writeFileSync(path, "");
  const sharing: Adapter = {
    ...databaseAgent,
    name: "claude",
    sessionFiles: () => [{ path, name: "all.db", kind: "shared" }],
    pathOf: () => null,
  };
  const context = { ...world.context, findAdapter: () => sharing };
  world.write("worktree/a", "1");
  const first = await takeCheckpoint(context, { reason: "manual" });
  fs.rmSync(world.path("conversation"), { recursive: true });
  const second = await takeCheckpoint(context, { reason: "manual" });
  const kept = {
    path: "conversation",
    kind: "degraded",
    reason: expect.stringContaining("in a database that other sessions share, so it was not restored"),
  };
  // In the second checkpoint the cell has no conversation.
  const restores = [
    { ref: first.ref, expected: [] },
    { ref: second.ref, expected: [kept] },
    { ref: first.ref, expected: [kept] },
  ];
  for (const { ref, expected } of restores) {
    const { flaws } = await restoreCell(context, { checkpoint: ref.id });
    expect(flaws).toEqual(expected);
    expect(fs.readdirSync(join(path, ".."))).toEqual([`${SESSION}.db`]);
  }
});
