// Steps inside tools: what they may return, how they may be named, and that every run ends.
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { describe, expect, test } from "vitest";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { sleep, step } from "../../../src/run/engine/scope.ts";
import { wakeRun } from "../../../src/run/operations/wake.ts";
import { createMemoryRunStore } from "../../../src/run/store/open.ts";
import { call, script } from "./models.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const HOUR = 3_600_000;

function worker(execute: () => unknown, store = createMemoryRunStore()) {
  const inner = tool({ inputSchema: anything, execute: ({ n }: Record<string, unknown>) => Number(n) * 2 });
  const tools = { work: tool({ inputSchema: anything, execute }), inner };
  const model = script([[call("work", {})], "done"]);
  const plain = new ToolLoopAgent({ id: "worker", model, tools, stopWhen: isStepCount(9) });
  const agent = durable(plain, { store, effects: { work: "nested" }, recover: false, graceMs: 10 });
  return { agent, store };
}

class Account {
  #balance = 1;
  toJSON() {
    return { balance: this.#balance };
  }
}

describe("the result of a step", () => {
  test.each<[string, unknown, unknown]>([
    ["an object of a class", new Account(), { balance: 1 }],
    ["a function", () => 1, null],
    ["an object with a function", { close: () => {}, id: 7 }, { id: 7 }],
  ])("that is %s is stored as JSON, with a warning, and the run ends", async (_, output, stored) => {
    const seen: unknown[] = [];
    const { agent, store } = worker(async () => {
      seen.push(await step("open", () => output));
      if (seen.length === 1) await sleep(HOUR);
      return "ok";
    });
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    await wakeRun(store.log, "r");
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
    expect(seen).toEqual([stored, stored]);
  });

  test("that refers to itself becomes a text that says so", async () => {
    const circular: { self?: unknown } = {};
    circular.self = circular;
    const { agent, store } = worker(() => step("open", () => circular));
    const { toolResults, text } = await agent.generate({ prompt: "go", runId: "r" });
    expect([text, String(toolResults[0]?.output)]).toEqual(["done", expect.stringContaining("is not JSON")]);
    expect((await store.head("r"))?.status).toBe("completed");
  });
});

describe("the names of steps", () => {
  test("that run at the same time differ: the second one is refused and not run", async () => {
    const did: string[] = [];
    const work = (name: string) =>
      step(name, async () => {
        await new Promise(setImmediate);
        did.push(name);
      });
    const twice = worker(async () => {
      const [, second] = await Promise.allSettled([work("send"), work("send")]);
      if (second?.status === "rejected") throw second.reason;
    });
    const refused = await twice.agent.generate({ prompt: "go" });
    expect(JSON.stringify(refused.steps[0]!.content)).toContain(
      "was started while another step of that name is running; it was not run",
    );
    expect(did).toEqual(["send"]);
    const other = worker(() => Promise.all([work("send a"), work("send b")]));
    expect((await other.agent.generate({ prompt: "go" })).steps[0]!.toolResults).toHaveLength(1);
    const inTurn = worker(async () => {
      for (const n of [1, 2]) await step("send", () => did.push(`in turn ${n}`));
      return "ok";
    });
    await inTurn.agent.generate({ prompt: "go" });
    expect(did).toEqual(["send", "send a", "send b", "in turn 1", "in turn 2"]);
  });

  test("may be the same as that of the enclosing step", async () => {
    const { agent } = worker(() => step("save", () => step("save", () => 1)));
    expect((await agent.generate({ prompt: "go" })).toolResults[0]?.output).toBe(1);
  });

  test.each<[string, () => unknown]>([
    ["no name", () => step("", () => 1)],
    ["a class that steps do not have", () => step("pay", () => 1, { effect: "reconcile" as never })],
  ])("a step with %s is refused", async (_, work) => {
    const { steps } = await worker(work).agent.generate({ prompt: "go" });
    expect(JSON.stringify(steps[0]!.content)).toMatch(/a step needs a name|has the effect/);
  });
});
