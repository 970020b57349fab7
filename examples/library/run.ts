// A durable run: killed anywhere and started again, it continues at the step where it stopped.
//
//   node examples/library/run.ts ./home
import { join } from "node:path";
import { jsonSchema } from "ai";
import { createExecutor, durableTool, openSqliteRunStore, recoverInterrupted } from "lazarus/run";
import { createScriptedModel } from "lazarus/testing";

await using store = openSqliteRunStore(join(process.argv[2] ?? ".", "runs.db"));
const executor = createExecutor({
  model: createScriptedModel([{ tool: "look_up", input: { name: "Ada" } }, "Ada is in the office."]),
  store,
});
const agent = {
  id: "assistant",
  tools: {
    look_up: durableTool({
      description: "Looks a person up.",
      inputSchema: jsonSchema<{ name: string }>({ type: "object", properties: { name: { type: "string" } } }),
      effect: "read",
      execute: ({ name }) => `${name}: office`,
    }),
  },
};

const [resumed] = await recoverInterrupted(executor, { agentFor: () => agent });
if (resumed === undefined) await executor.run(agent, "Where is Ada?");
const [head] = await store.list();
console.log(`ok: ${head!.status} after ${head!.step} steps`);
