// The agent of the kill loop of durable agents: two steps with one effect each, then an answer, as a whole or as a stream. It
// begins its run or continues it, and prints how it ended. Configured by its arguments.
import { type FlexibleSchema, isStepCount, jsonSchema, tool } from "ai";
import {
  currentEffect,
  DurableAgent,
  type EffectRule,
  openPostgresRunStore,
  openSqliteRunStore,
} from "../../../src/run/index.ts";
import { call, script } from "./models.ts";

const [place = "", schema = "", effect = "", world = "", mode = "generate"] = process.argv.slice(2);
const RUN_ID = "r";
const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const isDone = async (id: string) =>
  ((await (await fetch(`${world}/${id}`)).json()) as { count: number }).count > 0;
const rule: EffectRule<never> =
  effect === "reconcile"
    ? {
        reconcile: async (id) =>
          (await isDone(id)) ? { outcome: "done", output: "acted" } : { outcome: "not-done" },
      }
    : (effect as "once");
const store = place.startsWith("postgres:")
  ? await openPostgresRunStore(place, { schema, maxConnections: 2 })
  : openSqliteRunStore(place);
const settings = {
  id: "kill-agent",
  model: script([[call("act", { n: 1 })], [call("act", { n: 2 })], "done"]),
  tools: {
    act: tool({
      inputSchema: anything,
      execute: async () => {
        await fetch(`${world}/${currentEffect()!.id}`, { method: "POST" });
        return "acted";
      },
    }),
  },
  stopWhen: isStepCount(9),
};
const agent = new DurableAgent(settings, { store, effects: { act: rule }, recover: false });
const parameters = { prompt: "go", runId: RUN_ID };
try {
  if (mode === "stream") await (await agent.stream(parameters)).outcome;
  else await agent.generate(parameters);
} catch (error) {
  if ((error as { code?: string }).code !== "RUN_NEEDS_HUMAN") throw error;
}
const { journal } = store.log;
const entries = await journal.readEntries(RUN_ID);
process.stdout.write(
  JSON.stringify({
    status: (await journal.readHead(RUN_ID))?.status,
    unknown: entries
      .filter(({ state }) => state === "unknown")
      .map(({ step, call: n }) => `${RUN_ID}.${step}.${n}`),
  }),
);
await store[Symbol.asyncDispose]();
