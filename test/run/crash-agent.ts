// The agent of the kill loop: two phases with one effect each, then a final answer. It resumes an interrupted run or begins
// one, and prints how it ended.
import { jsonSchema } from "ai";
import { type Agent, createExecutor, recoverInterrupted } from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { actNested, effectClass, openStore, postEffect, printEnd, RUN_ID, reconcile } from "./victim.ts";

const store = await openStore();
const executor = createExecutor({
  model: createScriptedModel([{ calls: [{ tool: "act", input: {} }] }, "done"]),
  store,
  checkpoint: { required: true },
});
const inputSchema = jsonSchema<object>({ type: "object" });
const child: Agent = {
  id: "child",
  tools: { act: { inputSchema, effect: "once", execute: postEffect } },
};
const agent: Agent = {
  id: "crash-agent",
  phases: [
    { name: "first", prompt: "act once" },
    { name: "second", prompt: "act again" },
  ],
  tools: {
    act: {
      inputSchema,
      effect: effectClass,
      execute: () =>
        effectClass === "nested"
          ? actNested(async () => (await executor.run(child, "act")).output)
          : postEffect(),
      reconcile,
    },
  },
};

if ((await store.head(RUN_ID)) === undefined) await executor.run(agent, "go", { runId: RUN_ID });
// The kill loop may hit the same step ten times in a row.
else {
  await recoverInterrupted(executor, {
    agentFor: (head) => (head.agentId === agent.id ? agent : undefined),
    maxDeaths: Number.POSITIVE_INFINITY,
  });
}
await printEnd(store);
await store[Symbol.asyncDispose]();
