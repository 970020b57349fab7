// Copying a conversation to another mission with fork, export and import, and reading it back in a drill.
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { listStaged, openStagedTree } from "../../../src/agents/conversation/staged.ts";
import { readSession } from "../../../src/agents/session.ts";
import { drill } from "../../../src/snapshot/operations/drill.ts";
import { exportToFile } from "../../../src/snapshot/operations/export.ts";
import { forkMission } from "../../../src/snapshot/operations/fork.ts";
import { importCell } from "../../../src/snapshot/operations/import.ts";
import { readConversation } from "../../../src/snapshot/operations/read-conversation.ts";
import { restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { openMission } from "../../snapshot/restore-world.ts";
import { adopt, type ConversationWorld, createConversation, promptLine, SESSION } from "./world.ts";

let world: ConversationWorld;
beforeEach(() => {
  world = createConversation();
  world.append(promptLine("write a book", world.path("worktree")));
  world.work(1);
});
afterEach(() => world[Symbol.dispose]());

const homeFiles = () => fs.readdirSync(join(world.transcript(), ".."));

describe("fork", () => {
  it("has its own session, in names and lines, and writes nothing into the home", async () => {
    await world.checkpoint();
    const fork = openMission(world.directory, "forked");
    const { warnings, capture, flaws } = await forkMission(world.context, fork, {});
    expect([...warnings, ...flaws]).toEqual([]);
    const session = readSession(fork.cellRoot)!;
    expect(session.session).not.toBe(SESSION);
    expect(session.since_epoch).toBe(0);
    const [file] = listStaged(openStagedTree(fork.cellRoot), "claude");
    expect(file!.name).toBe(`${session.session}.jsonl`);
    expect(file!.read().toString()).toBe(world.read()!.replaceAll(SESSION, session.session!));
    expect(capture.checkpoint.metadata.conversation).toMatchObject({ session: session.session, turn: 1 });
    expect(homeFiles()).toEqual([`${SESSION}.jsonl`]);
    expect(readSession(world.cell)?.session).toBe(SESSION);
  });

  it("without a copy of the conversation starts without it, and says so", async () => {
    fs.rmSync(world.transcript());
    await world.checkpoint();
    const fork = openMission(world.directory, "forked");
    const { warnings } = await forkMission(world.context, fork, {});
    expect(warnings).toEqual(["forked starts without the conversation: its session cannot be copied"]);
    expect(fs.existsSync(join(fork.cellRoot, "conversation"))).toBe(false);
  });

  it("a session of another mission is neither copied nor written", async () => {
    await world.checkpoint();
    const fork = openMission(world.directory, "forked");
    await forkMission(world.context, fork, {});
    // As an agent of the fork might do it.
    adopt(fork, join(fork.cellRoot, "worktree"), world.home);
    const before = world.read();
    const { takeCheckpoint } = await import("../../../src/snapshot/operations/checkpoint.ts");
    const { flaws } = await takeCheckpoint(fork, { reason: "manual" });
    expect(flaws).toMatchObject([{ reason: expect.stringContaining("belongs to mission m") }]);
    expect(world.read()).toBe(before);
  });
});

it("an import has its own session, and writes nothing into the home", async () => {
  const { ref } = await world.checkpoint();
  const file = join(world.directory, "m.tar.gz");
  await exportToFile(world.context, ref, file);
  fs.rmSync(join(world.home, ".claude"), { recursive: true });
  const context = openMission(world.directory, "imported");
  const { lost, checkpoint } = await importCell(context, { source: file, owners: false });
  expect(lost).toEqual([]);
  const session = readSession(context.cellRoot)!.session!;
  expect(session).not.toBe(SESSION);
  expect(checkpoint.metadata.conversation).toMatchObject({ session, turn: 1 });
  expect(fs.existsSync(join(world.home, ".claude"))).toBe(false);
  // Once an agent was started there, a restore writes it.
  adopt(context, join(context.cellRoot, "worktree"), world.home, session);
  await restoreCell(context, {});
  const project = join(context.cellRoot, "worktree").replaceAll(/[^A-Za-z0-9]/g, "-");
  expect(fs.readdirSync(join(world.home, ".claude/projects", project))).toEqual([`${session}.jsonl`]);
});

describe("drill", () => {
  it("reads the conversation back", async () => {
    await world.checkpoint();
    expect((await drill(world.context)).differences).toEqual([]);
  });

  it("names a position that is not the recorded one", async () => {
    await world.checkpoint();
    const context = {
      ...world.context,
      findAdapter: (name: string) => {
        const adapter = world.context.findAdapter(name)!;
        const position = () => ({ turn: 9, last: null, open: [], isFinished: false, damagedLines: 0 });
        return { ...adapter, transcript: { ...adapter.transcript, position } };
      },
    };
    expect((await drill(context)).differences).toEqual([
      { path: "conversation", what: "is at turn 9, should be at turn 1, after Bash: write chapter 1" },
    ]);
  });
});

describe("reading", () => {
  it("any checkpoint, and now", async () => {
    const { ref } = await world.checkpoint();
    world.work(2);
    const now = await readConversation(world.context);
    expect(now).toMatchObject({ checkpoint: null, position: { turn: 2 } });
    const then = await readConversation(world.context, ref.id);
    expect(then).toMatchObject({ checkpoint: ref.id, position: { turn: 1 } });
    expect(then.entries.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
    expect(now.entries).toHaveLength(5);
  });

  it("redacts secrets that are not copied yet", async () => {
    const token = ["ghp", "abcdefghijklmnopqrstuvwxyz0123456789"].join("_");
    world.append(promptLine(`the token is ${token}`, "/w"));
    const { entries } = await readConversation(world.context);
    expect(JSON.stringify(entries)).not.toContain(token);
  });
});
