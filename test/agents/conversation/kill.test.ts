// SIGKILL at every crash point of copying a conversation and putting it back: the next command works without a repair, every
// checkpoint has a prefix of the conversation, and files and conversation are from the same moment.
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { listStaged, openStagedTree } from "../../../src/agents/conversation/staged.ts";
import { restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../../src/snapshot/operations/undo.ts";
import { listCrashPoints } from "../../../src/testing/crash-points.ts";
import { runUntil } from "../../crash/kill.ts";
import { type ConversationWorld, createConversation, databaseAgent, SESSION, stepLines } from "./world.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const points = listCrashPoints(here("../../../src/agents/conversation")).map(({ name }) => name);

async function killAt(point: string, world: ConversationWorld, ...args: string[]): Promise<void> {
  const { signal, stderr } = await runUntil(point, here("victim.ts"), world.directory, ...args);
  expect(signal, `${point} is never reached: make this test reach it: ${stderr}`).toBe("SIGKILL");
}

/** What happened before the checkpoint that is killed, and the crash points on its way. */
const STAGES: Record<string, { points: string[]; prepare: (world: ConversationWorld) => Promise<void> }> = {
  "the first copy of a session that was found": {
    points: ["session-written", "owner-written", "part-written", "parts-merged"],
    async prepare(world) {
      world.work(1);
    },
  },
  "a merge of parts": {
    points: ["part-written", "parts-merged"],
    async prepare(world) {
      for (let step = 1; step <= 8; step += 1) {
        if (step > 1) await world.checkpoint();
        world.work(step);
      }
    },
  },
  "a transcript that was rewritten": {
    points: ["generation-part-written", "old-generation-removed"],
    async prepare(world) {
      world.work(1);
      await world.checkpoint();
      const long = "x".repeat(300_000);
      fs.writeFileSync(world.transcript(), [5, 6, 7, 8].map((step) => stepLines(step, "/w", long)).join(""));
    },
  },
  "a file that is replaced as a whole": {
    points: ["whole-written"],
    async prepare(world) {
      world.work(1);
      const directory = join(world.transcript().replace(/\.jsonl$/, ""), "tool-results");
      fs.mkdirSync(directory, { recursive: true });
      fs.writeFileSync(join(directory, "x.txt"), "a result");
    },
  },
};

const copied = (world: ConversationWorld) =>
  listStaged(openStagedTree(world.cell), "claude")
    .find(({ name }) => name === `${SESSION}.jsonl`)
    ?.read()
    .toString("utf8");

describe.concurrent("a checkpoint killed while it copies", () => {
  for (const [name, { points: passed, prepare }] of Object.entries(STAGES))
    for (const point of passed)
      it(`${name}, at ${point}`, async () => {
        using world = createConversation(undefined, name.includes("found") ? null : SESSION);
        await prepare(world);
        await killAt(`agents.conversation.${point}`, world, "checkpoint");
        const before = copied(world) ?? "";
        // In the middle of it, the copy is one of the two states of the conversation, or a prefix.
        if (point !== "generation-part-written") expect(world.read()?.startsWith(before)).toBe(true);
        const { flaws, ref } = await world.checkpoint();
        expect(flaws).toEqual([]);
        expect(copied(world)).toBe(world.read());
        const text = world.read();
        world.work(9);
        await restoreCell(world.context, { checkpoint: ref.id });
        expect(world.read()).toBe(text);
      });

  it("a database", async () => {
    using world = createConversation();
    const context = { ...world.context, findAdapter: () => databaseAgent };
    const file = world.path("conversation/session.json");
    fs.writeFileSync(file, fs.readFileSync(file, "utf8").replace("claude", "databases"));
    const path = join(world.home, ".databases", `${SESSION}.db`);
    fs.mkdirSync(join(path, ".."), { recursive: true });
    using database = new DatabaseSync(path);
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE turns (session TEXT, n INTEGER)");
    const add = (n: number) => database.prepare("INSERT INTO turns VALUES (?, ?)").run(SESSION, n);
    add(1);
    await killAt("agents.conversation.database-written", world, "checkpoint");
    const { takeCheckpoint } = await import("../../../src/snapshot/operations/checkpoint.ts");
    const first = await takeCheckpoint(context, { reason: "manual" });
    expect(first.flaws).toEqual([]);
    expect(first.checkpoint.metadata.conversation?.turn).toBe(1);
    add(2);
    const second = await takeCheckpoint(context, { reason: "manual" });
    expect(second.checkpoint.metadata.conversation?.turn).toBe(2);
    // Not pushed: a database cannot be redacted.
    const local = second.checkpoint.layers.filter(({ mediaType }) => mediaType.includes("nondistributable"));
    expect(local).not.toEqual([]);
    database.close();
    const { flaws } = await restoreCell(context, { checkpoint: first.ref.id });
    expect(flaws).toEqual([]);
    expect(fs.existsSync(`${path}-wal`)).toBe(false);
    using restored = new DatabaseSync(path, { readOnly: true });
    expect(restored.prepare("SELECT n FROM turns").all()).toEqual([{ n: 1 }]);
  });
});

describe.concurrent("a restore killed while it puts the conversation back", () => {
  const passed = ["file-put-back", "file-removed", "put-back"].map((name) => `agents.conversation.${name}`);
  for (const point of [...passed, "snapshot.restore.synced", "snapshot.restore.conversation-put-back"])
    it(`at ${point}: the next command finishes it`, async () => {
      using world = createConversation();
      world.work(1);
      const first = (await world.checkpoint()).ref.id;
      const early = world.read();
      world.work(2);
      const subagent = join(world.transcript().replace(/\.jsonl$/, ""), "subagents", "agent-1.jsonl");
      fs.mkdirSync(join(subagent, ".."), { recursive: true });
      fs.writeFileSync(subagent, stepLines(5, "/w"));
      const late = world.read();
      await killAt(point, world, "restore", first);
      const { flaws, finished } = await world.checkpoint();
      expect(flaws).toEqual([]);
      expect(finished?.flaws).toEqual([]);
      expect(world.read()).toBe(early);
      expect(fs.existsSync(subagent)).toBe(false);
      expect(fs.existsSync(world.path("worktree/chapter-2.md"))).toBe(false);
      expect(copied(world)).toBe(early);
      await undoRestore(world.context);
      expect(world.read()).toBe(late);
      expect(fs.readFileSync(subagent, "utf8")).toBe(stepLines(5, "/w"));
      const names = fs.readdirSync(join(world.transcript(), ".."));
      expect(names.filter((name) => name.includes("aside") || name.startsWith("."))).toEqual([]);
    });
});

it("every crash point of the conversation is in one of the loops", () => {
  const source = fs.readFileSync(import.meta.filename, "utf8");
  expect(
    points.filter((point) => !source.includes(`"${point.split(".").at(-1)}"`) && !source.includes(point)),
  ).toEqual([]);
});
