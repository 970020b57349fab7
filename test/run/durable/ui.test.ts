// UI message streams of durable agents, unchanged in the host's code, and tool search.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAgentUIStreamResponse, isStepCount, ToolLoopAgent, tool, toolSearch } from "ai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { call, type Line, script } from "./models.ts";
import { fieldsOf } from "./sdk-types.ts";
import { UI_OPTIONS } from "./ui-options.ts";

const find = tool({
  description: "Finds.",
  inputSchema: z.object({ q: z.string() }),
  execute: ({ q }) => [q],
});

function pair(lines: readonly Line[], tools: Record<string, unknown>) {
  const make = () => {
    const model = script(lines);
    const agent = new ToolLoopAgent({
      id: "ui",
      model,
      tools: tools as { find: typeof find },
      stopWhen: isStepCount(9),
    });
    return { model, agent };
  };
  const plain = make();
  const kept = make();
  const store = { log: createRunLog(createMemoryJournal()) };
  return { plain, kept, store, agent: durable(kept.agent, { store, recover: false }) };
}

const uiMessages = [{ id: "u1", role: "user", parts: [{ type: "text", text: "find x" }] }];
/** Deltas are joined in the journal; ids of messages are the run's. */
const chunksOf = async (response: Response) => chunksIn(await response.text());
const chunksIn = (text: string) =>
  text
    .split("\n\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Record<string, unknown>)
    .filter(({ type }) => !/-delta$/.test(String(type)))
    .map(({ messageId: _, ...chunk }) => chunk);

const SOURCE = { type: "source", sourceType: "url", id: "s1", url: "https://example.org/", title: "S" };

/** How a text is divided into deltas is not kept. */
function joined(chunks: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return chunks.filter(({ type }) => !/-delta$/.test(String(type)));
}

/** Without ids that are made up, and without what was measured. */
function comparable(value: unknown): unknown {
  const text = JSON.stringify(value, (name, each) => {
    if (name === "performance" || name === "callId") return undefined;
    return /^(?:aitxt-\w+|[\d-]+-\w+\.\d+\.\d+)$/.test(String(each)) ? "<id>" : each;
  });
  return JSON.parse(text);
}

test("a UI stream equals the plain agent's, and a later reader gets all of it under one message id", async () => {
  const { plain, agent, store } = pair([[call("find", { q: "x" })], "found"], { find });
  const expected = await chunksOf(await createAgentUIStreamResponse({ agent: plain.agent, uiMessages }));
  const actual = await chunksOf(await createAgentUIStreamResponse({ agent, uiMessages }));
  expect(actual).toEqual(expected);
  const runId = (await store.log.journal.list({}))[0]!.id;
  const again = await (await agent.follow(runId)).toUIMessageStreamResponse().text();
  expect(again).toContain(`"messageId":"${runId}"`);
  const followed = await chunksOf((await agent.follow(runId)).toUIMessageStreamResponse());
  expect(followed).toEqual(expected);
});

describe("a UI stream with each option of the SDK equals the plain agent's", () => {
  const lines: Line[] = [
    [{ type: "reasoning", text: "hmm" }, SOURCE, call("find", { q: "x" })],
    [{ type: "text", text: "found" }, call("fail", {})],
    "sorry",
  ];
  const fail = tool({
    inputSchema: z.object({}),
    execute: (): string => {
      throw new Error("no");
    },
  });
  test.each(Object.entries(UI_OPTIONS))("%s", async (_, optionsOf) => {
    const { plain, agent } = pair(lines, { find, fail });
    const observe = async (used: typeof plain.agent) => {
      const events: unknown[] = [];
      const note = (name: string, data: unknown) =>
        void events.push([name, JSON.parse(JSON.stringify(data))]);
      const options = { generateMessageId: () => "answer", ...optionsOf(note) };
      const response = await createAgentUIStreamResponse({ agent: used, uiMessages, ...options });
      const [streamed, headers] = [await chunksOf(response), Object.fromEntries(response.headers)];
      const result = await used.stream({ prompt: "find x" });
      const chunks = joined(await Array.fromAsync(result.toUIMessageStream(options)));
      return comparable({ streamed, headers, chunks, events });
    };
    const expected = await observe(plain.agent);
    expect(expected).toMatchObject({
      chunks: expect.arrayContaining([{ type: "text-end", id: expect.anything() }]),
    });
    expect(await observe(agent)).toEqual(expected);
  });
  const types = readFileSync(new URL("../../../node_modules/ai/dist/index.d.ts", import.meta.url), "utf8");
  test.each([
    "type UIMessageStreamOptions<",
    "type AgentUIMessageStreamOptions<",
    "type UIMessageStreamResponseInit =",
  ])("the list has every field of %s", (start) => {
    const found = fieldsOf(types, start);
    expect(found.length).toBeGreaterThan(1);
    expect(found.filter((name) => !Object.hasOwn(UI_OPTIONS, name))).toEqual([]);
  });
});

test("responses of a stream equal the plain agent's", async () => {
  const { plain, agent } = pair([[call("find", { q: "x" })], "found"], { find });
  const piped = async (write: (response: ServerResponse) => Promise<void>) => {
    const server = createServer((_, response) => void write(response)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const response = await fetch(`http://127.0.0.1:${port}`);
    const text = await response.text();
    server.close();
    return [response.headers.get("content-type"), chunksIn(text).length > 0 ? chunksIn(text) : text];
  };
  const observe = async (used: typeof plain.agent) => {
    const start = () => used.stream({ prompt: "find x" });
    const text = (await start()).toTextStreamResponse({ status: 201 });
    const options = { generateMessageId: () => "answer" };
    return comparable([
      [text.status, await text.text()],
      await chunksOf((await start()).toUIMessageStreamResponse(options)),
      await piped(async (to) => (await start()).pipeTextStreamToResponse(to)),
      await piped(async (to) => (await start()).pipeUIMessageStreamToResponse(to, options)),
    ]);
  };
  const expected = await observe(plain.agent);
  expect(JSON.stringify(expected)).toContain("found");
  expect(await observe(agent)).toEqual(expected);
});

test("tools found by tool search are found again by a replay", async () => {
  const lines: Line[] = [[call("search", { query: "finds" })], [call("find", { q: "y" })], "found"];
  const { plain, kept, agent } = pair(lines, { search: toolSearch(), find: { ...find, deferLoading: true } });
  const expected = await plain.agent.generate({ prompt: "go" });
  const first = await agent.generate({ prompt: "go", runId: "r" });
  const second = await agent.generate({ runId: "r" });
  for (const result of [first, second]) expect(result.toolResults).toEqual(expected.toolResults);
  expect(kept.model.asked.map(({ tools }) => tools)).toEqual(plain.model.asked.map(({ tools }) => tools));
});
