// What every contender runs: an agent of ten steps, each of which but the last calls a tool once. Its model answers immediately and
// keeps nothing, so that the loop of the SDK and the record of it are all there is to measure.
import { isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";

const STEPS = 10;
const TEXT = "x".repeat(500);
const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

async function answer({ prompt }) {
  const step = prompt.filter(({ role }) => role === "assistant").length + 1;
  const call = { type: "tool-call", toolCallId: `c${step}`, toolName: "work", input: `{"n":${step}}` };
  const isLast = step >= STEPS;
  return {
    content: isLast ? [{ type: "text", text: "done" }] : [{ type: "text", text: TEXT }, call],
    finishReason: { unified: isLast ? "stop" : "tool-calls", raw: undefined },
    usage,
    warnings: [],
  };
}

/** `record` makes one call of the model or the tool durable. */
export function createAgent(record = (_name, call) => call()) {
  const model = {
    ...{ specificationVersion: "v4", provider: "bench", modelId: "bench", supportedUrls: {} },
    doGenerate: (options) => record("model", () => answer(options)),
    doStream: () => Promise.reject(new Error("not used")),
  };
  const work = tool({
    inputSchema: jsonSchema({ type: "object" }),
    execute: ({ n }) => record("tool", async () => ({ ok: n })),
  });
  return new ToolLoopAgent({ id: "bench", model, tools: { work }, stopWhen: isStepCount(STEPS + 1) });
}
