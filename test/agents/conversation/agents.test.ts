// Restores with agents: the revived agent continues from that point, and an undo brings everything back. The agent of a
// fork continues the conversation from the checkpoint, in its own session.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readSession } from "../../../src/agents/session.ts";
import { parseMissionId } from "../../../src/cell/mission-id.ts";
import { reviveMission } from "../../../src/pit/actions.ts";
import { takeCheckpoint } from "../../../src/snapshot/operations/checkpoint.ts";
import { forkMission } from "../../../src/snapshot/operations/fork.ts";
import { readConversation } from "../../../src/snapshot/operations/read-conversation.ts";
import { previewRestore, restoreCell } from "../../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../../src/snapshot/operations/undo.ts";
import { HEADLESS } from "../fake/headless.ts";
import { PROFILES } from "../fake/profiles.ts";
import { type Book, createRevivalWorld, type RevivalWorld } from "../revival-world.ts";

const AGENTS = Object.keys(PROFILES);

let world: RevivalWorld;
beforeAll(() => {
  world = createRevivalWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const chapters = ({ cell }: Book) =>
  readdirSync(join(cell, "worktree")).filter((name) => name.startsWith("chapter-")).length;

/** A book of four chapters that has ended, and its checkpoint after the second. */
async function writeBook(agent: string, mission: string): Promise<{ book: Book; second: string }> {
  const book = world.book(agent, mission, { FAKE_PAUSE: "3:response", FAKE_STEPS: "4" });
  await book.start();
  await book.paused();
  const { ref } = await takeCheckpoint(world.context.openMission(book.mission), { reason: "manual" });
  writeFileSync(join(book.traces, "go"), "");
  await book.finish();
  expect(chapters(book)).toBe(4);
  return { book, second: ref.id };
}

describe.concurrent.each(AGENTS)("%s", (agent) => {
  const { cannotResume, notCaptured } = PROFILES[agent]!;
  const [itRestoresBoth, itRestoresFiles] = notCaptured === undefined ? [it] : [undefined, it];

  itRestoresBoth?.(
    "restored to step 2 and revived, continues with step 3; undo brings files and conversation back",
    async () => {
      const { book, second } = await writeBook(agent, `${agent}-restored`);
      const context = world.context.openMission(book.mission);
      const whole = (await readConversation(context)).position;
      const { conversation, flaws } = await restoreCell(context, { checkpoint: second });
      expect(flaws).toEqual([]);
      expect(chapters(book)).toBe(2);
      expect((await readConversation(context)).position).toEqual(conversation);
      await undoRestore(context);
      expect(chapters(book)).toBe(4);
      expect((await readConversation(context)).position).toEqual(whole);
      await restoreCell(context, { checkpoint: second });
      const before = book.asked().length;
      await reviveMission(world.context, book.mission, {});
      await book.finish();
      expect(book.asked().slice(before)).toEqual([...(cannotResume ? ["1", "2"] : []), "3", "4", "done"]);
      expect(book.lastPrompt()).toContain(cannotResume ?? `were restored to checkpoint ${second}`);
      expect(chapters(book)).toBe(4);
      expect(book.effects()).toEqual({ 1: 1, 2: 1, 3: 1, 4: 1 });
    },
  );

  itRestoresFiles?.("restored to step 2, is told that its conversation is ahead of the files", async () => {
    const { book, second } = await writeBook(agent, `${agent}-restored`);
    const context = world.context.openMission(book.mission);
    const whole = (await readConversation(context)).position;
    await expect(restoreCell(context, { checkpoint: second, part: "conversation" })).rejects.toMatchObject({
      code: "CONVERSATION_UNSUPPORTED",
    });
    for (const result of [
      await previewRestore(context, { checkpoint: second }),
      await restoreCell(context, { checkpoint: second }),
    ])
      expect(result).toMatchObject({
        moves: [],
        conversation: null,
        flaws: [{ path: "conversation", reason: expect.stringContaining("so it was not restored") }],
      });
    expect(chapters(book)).toBe(2);
    expect((await readConversation(context)).position).toEqual(whole);
    const before = book.asked().length;
    await reviveMission(world.context, book.mission, {});
    await book.finish();
    expect(book.asked().slice(before)).toEqual(["done"]);
    expect(book.lastPrompt()).toContain(
      `The files were restored to checkpoint ${second}; what you did after it is not in the files.`,
    );
    expect(book.effects()).toEqual({ 1: 1, 2: 1 });
  });

  it("in a fork, continues the conversation in its own session, or starts without one", async () => {
    const { book, second } = await writeBook(agent, `${agent}-original`);
    const fork = world.book(agent, `${agent}-forked`, { FAKE_STEPS: "4" });
    const original = world.context.openMission(book.mission);
    const { warnings } = await forkMission(
      original,
      world.context.openMission(parseMissionId(fork.mission)),
      {
        at: second,
      },
    );
    const isCopied = existsSync(join(fork.cell, "conversation/session.json"));
    expect(warnings.length).toBe(isCopied ? 0 : 1);
    await fork.start({ command: [agent, ...HEADLESS[agent]!.args("Go on with the book")] });
    await fork.finish();
    expect(fork.asked()).toEqual(isCopied ? ["3", "4", "done"] : ["1", "2", "3", "4", "done"]);
    expect(readSession(fork.cell)?.session).not.toBe(readSession(book.cell)?.session);
    expect((await readConversation(original)).position.session).toBe(readSession(book.cell)?.session);
  });
});
