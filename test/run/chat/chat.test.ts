// The chat example over HTTP: its server is killed with SIGKILL in the middle of a word, at requests for approval and around
// the mail, and started again. A client that reconnects gets the same stream as without a kill, and one mail is sent.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { UIMessageChunk } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  approved,
  ChatServer,
  compact,
  EVERYTHING,
  messageOf,
  outboxOf,
  QUESTION,
  readChunks,
  textOf,
} from "./chat-server.ts";

const ID = "answer";
let root: string;
let undisturbed: UIMessageChunk[];

const isRequest = ({ type }: UIMessageChunk) => type === "tool-approval-request";

/** Connects, starts the server again if it has died, and answers requests, until the answer is complete. */
async function finish(directory: string): Promise<UIMessageChunk[]> {
  for (;;) {
    await using server = await ChatServer.start(directory, EVERYTHING);
    let response = await server.follow(ID);
    if (response.status === 404) response = await server.post(ID, [QUESTION]);
    let { chunks, isWhole } = await readChunks(response);
    if (isWhole && chunks.some(isRequest) && !chunks.some(({ type }) => type === "tool-output-available")) {
      await readChunks(await server.post(ID, [QUESTION, approved(await messageOf(chunks))]));
      ({ chunks, isWhole } = await readChunks(await server.follow(ID)));
    }
    if (isWhole) return compact(chunks);
  }
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "lazarus-chat-"));
  undisturbed = await finish(mkdtempSync(join(root, "chat-")));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("without a kill", () => {
  expect(textOf(undisturbed)).toMatch(/^Certainly\. .*May I send it\?Done\. .*anybody\.$/);
  expect(undisturbed.filter(({ type }) => type === "start" || type === "finish").length).toBe(2);
});

test.each([0, 1, 7, 19])("killed after %i fragments of the first answer", async (fragments) => {
  const directory = mkdtempSync(join(root, "chat-"));
  await using server = await ChatServer.start(directory, fragments);
  const response = await server.post(ID, [QUESTION]);
  const { chunks } = await readChunks(
    response,
    (all) => all.filter(({ type }) => type === "text-delta").length === fragments && all.length > 0,
  );
  await server.kill();
  expect(textOf(undisturbed).startsWith(textOf(chunks))).toBe(true);
  expect(await finish(directory)).toEqual(undisturbed);
  expect(outboxOf(directory).length).toBe(1);
});

test.each([0, 1, 5])("killed after %i fragments of the answer that follows the mail", async (fragments) => {
  const directory = mkdtempSync(join(root, "chat-"));
  await using server = await ChatServer.start(directory, 20);
  // The first answer takes what it needs, and the rest is what the second may stream.
  const first = await readChunks(await server.post(ID, [QUESTION]));
  server.allow(fragments);
  const second = await server.post(ID, [QUESTION, approved(await messageOf(first.chunks))]);
  await readChunks(
    second,
    (all) =>
      all.some(({ type }) => type === "tool-output-available") &&
      all.filter(({ type }) => type === "text-delta").length === fragments,
  );
  await server.kill();
  expect(outboxOf(directory).length).toBe(1);
  expect(await finish(directory)).toEqual(undisturbed);
  expect(outboxOf(directory).length).toBe(1);
});

test.each([
  "engine.begin.recorded",
  "engine.model.before",
  "engine.model.streamed",
  "engine.close.before",
  "engine.close.after",
  "engine.resume.claimed",
  "engine.effect.prepared",
  "engine.effect.started",
  "engine.effect.happened",
  "engine.effect.recorded",
  "engine.model.streamed#2",
  "engine.close.after#2",
])("killed at %s", async (crashAt) => {
  const directory = mkdtempSync(join(root, "chat-"));
  await using server = await ChatServer.start(directory, EVERYTHING, { crashAt });
  try {
    const { chunks, isWhole } = await readChunks(await server.post(ID, [QUESTION]));
    if (isWhole) await readChunks(await server.post(ID, [QUESTION, approved(await messageOf(chunks))]));
  } catch {
    // Killed before the response.
  }
  expect(await finish(directory)).toEqual(undisturbed);
  expect(outboxOf(directory).length).toBe(1);
});
