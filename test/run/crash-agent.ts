// The agent of the kill loop: two steps with one effect each, then a final answer. It resumes an interrupted run or begins
// one, and prints how it ended. Configured by its arguments.
import { jsonSchema } from "ai";
import {
  type Agent,
  createExecutor,
  type EffectClass,
  openPostgresRunStore,
  openSqliteRunStore,
  recoverInterrupted,
} from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";

const [place = "", schema = "", effect = "", world = ""] = process.argv.slice(2);
const RUN_ID = "r";

const isDone = async (id: string) =>
  ((await (await fetch(`${world}/${id}`)).json()) as { count: number }).count > 0;
const agent: Agent = {
  id: "crash-agent",
  phases: [
    { name: "first", prompt: "act once" },
    { name: "second", prompt: "act again" },
  ],
  tools: {
    act: {
      inputSchema: jsonSchema<object>({ type: "object" }),
      effect: effect as EffectClass,
      execute: async (_, { effectId }) => {
        await fetch(`${world}/${effectId}`, { method: "POST" });
        return "acted";
      },
      reconcile: async (id) =>
        (await isDone(id)) ? { outcome: "done", output: "acted" } : { outcome: "not-done" },
    },
  },
};

const store = place.startsWith("postgres:")
  ? await openPostgresRunStore(place, { schema, maxConnections: 2 })
  : openSqliteRunStore(place);
const executor = createExecutor({
  model: createScriptedModel([{ calls: [{ tool: "act", input: {} }] }, "done"]),
  store,
  checkpoint: { required: true },
});
if ((await store.head(RUN_ID)) === undefined) await executor.run(agent, "go", { runId: RUN_ID });
// The kill loop may hit the same step ten times in a row.
else await recoverInterrupted(executor, { agentFor: () => agent, maxDeaths: Number.POSITIVE_INFINITY });
const record = await store.load(RUN_ID);
process.stdout.write(
  JSON.stringify({
    status: record?.head.status,
    unknown: record?.effects.filter(({ state }) => state === "unknown").map(({ id }) => id),
    messages: record?.transcript.length,
  }),
);
await store[Symbol.asyncDispose]();
