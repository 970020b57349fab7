// UI message streams of durable agents, unchanged in the host's code, and tool search.
import { createAgentUIStreamResponse, isStepCount, ToolLoopAgent, tool, toolSearch } from "ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { createMemoryJournal } from "../../../src/run/journal/memory.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { call, type Line, script } from "./models.ts";

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
const chunksOf = async (response: Response) =>
  (await response.text())
    .split("\n\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)) as Record<string, unknown>)
    .filter(({ type }) => !/-delta$/.test(String(type)))
    .map(({ messageId: _, ...chunk }) => chunk);

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

test("tools found by tool search are found again by a replay", async () => {
  const lines: Line[] = [[call("search", { query: "finds" })], [call("find", { q: "y" })], "found"];
  const { plain, kept, agent } = pair(lines, { search: toolSearch(), find: { ...find, deferLoading: true } });
  const expected = await plain.agent.generate({ prompt: "go" });
  const first = await agent.generate({ prompt: "go", runId: "r" });
  const second = await agent.generate({ runId: "r" });
  for (const result of [first, second]) expect(result.toolResults).toEqual(expected.toolResults);
  expect(kept.model.asked.map(({ tools }) => tools)).toEqual(plain.model.asked.map(({ tools }) => tools));
});
