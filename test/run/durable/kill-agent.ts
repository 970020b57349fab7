// The agent of the kill loop of durable agents: two steps with one effect each, then an answer, as a whole or as a stream. It
// begins its run or continues it, and prints how it ended.
import { type FlexibleSchema, isStepCount, jsonSchema, tool } from "ai";
import { DurableAgent, type EffectRule } from "../../../src/run/index.ts";
import { actNested, effectClass, openStore, postEffect, printEnd, RUN_ID, reconcile } from "../victim.ts";
import { call, script } from "./models.ts";

const isStream = process.argv[6] === "stream";
const inputSchema = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const stopWhen = isStepCount(9);
const rule: EffectRule<never> = effectClass === "reconcile" ? { reconcile } : effectClass;
const store = await openStore();
const child = new DurableAgent(
  {
    id: "child",
    model: script([[call("act", { n: 1 })], "done"]),
    tools: { act: tool({ inputSchema, execute: postEffect }) },
    stopWhen,
  },
  { store, recover: false },
);
const startChild = async () =>
  isStream
    ? await (await child.stream({ prompt: "act" })).text
    : (await child.generate({ prompt: "act" })).text;
const agent = new DurableAgent(
  {
    id: "kill-agent",
    model: script([[call("act", { n: 1 })], [call("act", { n: 2 })], "done"]),
    tools: {
      act: tool({
        inputSchema,
        execute: () => (effectClass === "nested" ? actNested(startChild) : postEffect()),
      }),
    },
    stopWhen,
  },
  { store, effects: { act: rule }, recover: false },
);
const parameters = { prompt: "go", runId: RUN_ID };
try {
  if (isStream) await (await agent.stream(parameters)).outcome;
  else await agent.generate(parameters);
} catch (error) {
  if (!["RUN_NEEDS_HUMAN", "RUN_WAITING"].includes((error as { code?: string }).code ?? "")) throw error;
}
await printEnd(store);
await store[Symbol.asyncDispose]();
