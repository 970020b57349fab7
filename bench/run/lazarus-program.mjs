// 1,000 runs of 10 steps of a durable agent on PostgreSQL, in a process of its own: argv is the connection and the number of
// runs. Each step but the last calls a tool once; the response and the result are recorded, as in dbos-program.mjs.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { durable, openPostgresRunStore } from "lazarus/run";

const [, , connection, count] = process.argv;
const STEPS = 10;
const TEXT = "x".repeat(500);
const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const step = prompt.filter(({ role }) => role === "assistant").length + 1;
    const call = { type: "tool-call", toolCallId: `c${step}`, toolName: "work", input: `{"n":${step}}` };
    const isLast = step >= STEPS;
    return {
      content: isLast ? [{ type: "text", text: "done" }] : [{ type: "text", text: TEXT }, call],
      finishReason: { unified: isLast ? "stop" : "tool-calls", raw: undefined },
      usage,
      warnings: [],
    };
  },
});
await using store = await openPostgresRunStore(connection, { keepSecrets: true });
const work = tool({ inputSchema: jsonSchema({ type: "object" }), execute: ({ n }) => ({ ok: n }) });
const agent = durable(
  new ToolLoopAgent({ id: "bench", model, tools: { work }, stopWhen: isStepCount(STEPS + 1) }),
  {
    ...{ store, effects: { work: "idempotent" }, recover: false },
  },
);
await agent.generate({ prompt: "go" });
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
let peak = 0;
const timer = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage().rss);
}, 20);
const started = performance.now();
await Promise.all(Array.from({ length: Number(count) }, () => agent.generate({ prompt: "go" })));
const ms = performance.now() - started;
clearInterval(timer);
const { user, system } = process.cpuUsage();
process.stdout.write(JSON.stringify({ ms, peak, stallMs: delay.max / 1e6, cpuMs: (user + system) / 1000 }));
