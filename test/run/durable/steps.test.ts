// Steps inside tools: what they may return, how they may be named, and that every run ends.
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { describe, expect, test } from "vitest";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { UnknownOutcomeError } from "../../../src/run/engine/ledger.ts";
import { sleep, step, waitFor } from "../../../src/run/engine/scope.ts";
import { readRecord } from "../../../src/run/log/read.ts";
import { resolveEntry } from "../../../src/run/log/resolve.ts";
import { sendToRun } from "../../../src/run/operations/send.ts";
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

const nested = (depth: number) => JSON.parse("[".repeat(depth) + "]".repeat(depth));
const recordOf = async ({ log }: ReturnType<typeof createMemoryRunStore>) => (await readRecord(log, "r"))!;
const TOO_DEEP = "The call succeeded; its result is nested too deeply to be stored.";

describe("a deeply nested value", () => {
  test.each([198, 199, 200, 201, 202, 5000])(
    "of %i levels that a tool returns leaves its effect done and the run able to end",
    async (depth) => {
      const { agent, store } = worker(() => nested(depth));
      const { text, toolResults } = await agent.generate({ prompt: "go", runId: "r" });
      const { head, effects } = await recordOf(store);
      expect([text, head.status, effects[0]?.state]).toEqual(["done", "completed", "done"]);
      expect(effects[0]?.output).toEqual(depth <= 200 ? nested(depth) : TOO_DEEP);
      // What the model is told now is what it is told after a resume.
      expect(toolResults[0]?.output).toEqual(effects[0]?.output);
    },
  );

  test.each([198, 199, 200, 201, 202])("of %i levels that a step returns lets the run end", async (depth) => {
    const { agent, store } = worker(async () => (await step("dig", () => nested(depth))) === TOO_DEEP);
    const { toolResults } = await agent.generate({ prompt: "go", runId: "r" });
    expect(toolResults[0]?.output).toBe(depth > 200);
    expect((await store.head("r"))?.status).toBe("completed");
  });

  test.each([197, 200])(
    "of %i levels that is the cause of an error leaves its effect failed and the run able to end",
    async (depth) => {
      const { agent, store } = worker(() => {
        throw new Error("no", { cause: nested(depth) });
      });
      expect((await agent.generate({ prompt: "go", runId: "r" })).text).toBe("done");
      expect((await recordOf(store)).effects[0]?.state).toBe("failed");
    },
  );

  test.each([198, 199, 200])("of %i levels is accepted as a message, and delivered", async (depth) => {
    const { agent, store } = worker(() => waitFor("go"));
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    await sendToRun(store.log, "r", nested(depth), { name: "go" });
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
    const output = (await recordOf(store)).effects[0]?.output as { value?: unknown } | string | undefined;
    // The message itself is one level more.
    const expected = depth < 200 ? expect.objectContaining({ value: nested(depth) }) : TOO_DEEP;
    expect(output).toEqual(expected);
  });

  test("of 201 levels is refused as a message, an input and a decision, and nothing is stored", async () => {
    const refused = {
      code: "RUN_NOT_STORABLE",
      message: expect.stringContaining("more than 200 levels deep"),
    };
    const { agent, store } = worker(() => {
      throw new UnknownOutcomeError("lost");
    });
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
      code: "RUN_NEEDS_HUMAN",
    });
    await expect(sendToRun(store.log, "r", nested(201), { name: "go" })).rejects.toMatchObject(refused);
    const [effect] = (await recordOf(store)).effects;
    const decide = (depth: number) =>
      resolveEntry(store.log, effect!.id, { outcome: "done", output: nested(depth) });
    await expect(decide(201)).rejects.toMatchObject(refused);
    const options = nested(201);
    await expect(agent.generate({ prompt: "go", runId: "s", options })).rejects.toMatchObject(refused);
    expect(await store.head("s")).toBeUndefined();
    expect(await decide(200)).toMatchObject({ state: "done" });
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
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
