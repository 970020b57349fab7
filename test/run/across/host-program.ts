// A host of durable agents, as its own process: it executes what is in the store, runs a schedule if it is told to, and streams a
// run whose text comes from its standard input, a fragment per line. It appends to a log what its tools do. Ends with its
// standard input.
import { appendFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import {
  currentEffect,
  durable,
  openPostgresRunStore,
  openSqliteRunStore,
  sleep,
  step,
  waitFor,
} from "../../../src/run/index.ts";
import { call, script, USAGE } from "../durable/models.ts";

const [place = "", log = "", role = "serve"] = process.argv.slice(2);
const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const store = place.startsWith("postgres:")
  ? await openPostgresRunStore(place, { maxConnections: 3 })
  : openSqliteRunStore(place);
const note = (what: string) => appendFileSync(log, `${what} ${currentEffect()!.runId} ${process.pid}\n`);

const kinds: Readonly<Record<string, () => unknown>> = {
  act: () => note("end"),
  /** Ends when the test tells it to. */
  async hold() {
    note("start");
    while (!existsSync(`${log}.go`)) await setTimeout(20);
    note("end");
    return "held";
  },
  ask: () => step("act", () => note("start")),
  listen: async () => (await waitFor("go"))?.value,
  nap: () => sleep(3_600_000),
  hang: () => {
    note("start");
    return new Promise(() => {});
  },
};
const model = script([
  (prompt) => {
    const asked = (prompt as { role: string; content: { text: string }[] }[]).find(
      ({ role: by }) => by === "user",
    );
    const kind = asked!.content[0]!.text;
    return [call(kind === "ask" ? "ask" : "work", { kind })];
  },
  "done",
]);
const execute = ({ kind }: Record<string, unknown>) => kinds[String(kind)]!();
const tools = {
  work: tool({ inputSchema: anything, execute }),
  ask: tool({ inputSchema: anything, execute, needsApproval: true }),
};
const worker = durable(new ToolLoopAgent({ id: "worker", model, tools, stopWhen: isStepCount(9) }), {
  ...{ store, graceMs: 10 },
  effects: { work: "nested", ask: "nested" },
});

const fragments: string[] = [];
let onFragment = () => {};
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  fragments.push(line);
  onFragment();
});
lines.once("close", () => process.exit());

async function nextFragment(): Promise<string> {
  while (fragments.length === 0)
    await new Promise<void>((resolve) => {
      onFragment = resolve;
    });
  return fragments.shift()!;
}

if (role === "schedule") {
  const next = (afterMs: number) => (Math.floor(afterMs / 250) + 1) * 250;
  worker.schedule({ name: "often", next, catchUp: "all", overlap: "queue" }, { prompt: "act" });
}
if (role === "stream") {
  async function* parts() {
    yield { type: "stream-start", warnings: [] };
    yield { type: "text-start", id: "t" };
    for (let delta = await nextFragment(); delta !== "end"; delta = await nextFragment())
      yield { type: "text-delta", id: "t", delta };
    yield { type: "text-end", id: "t" };
    yield { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE };
  }
  const typist = new MockLanguageModelV4({
    modelId: "typist",
    doStream: async () => ({ stream: ReadableStream.from(parts()) as never }),
  });
  const agent = durable(new ToolLoopAgent({ id: "typist", model: typist }), { store, recover: false });
  await (await agent.stream({ prompt: "type", runId: "typed" })).outcome;
}
