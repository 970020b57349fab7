// What an executor once did silently: ignore approvals and settings, take the caller's own history for an answer, skip the
// body of a generator, never end a run with a bigint, and report a cut-off answer as an empty one.
import { type FlexibleSchema, jsonSchema } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { expect, test } from "vitest";
import { z } from "zod";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";
import { createExecutor, createMemoryRunStore } from "../../src/run/index.ts";
import { createRunStore } from "../../src/run/store/run-store.ts";
import { createMemoryBackend } from "../../src/run/stores/memory.ts";
import { createSimulatedClock } from "../../src/testing/simulated-clock.ts";
import { USAGE } from "./durable/models.ts";
import { createScriptedModel } from "./scripted-model.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;

test.each(["toolApproval", "temperature", "stopWhen", "prepareStep"])(
  "%s is refused by name",
  async (name) => {
    let paid = 0;
    const agent = {
      id: "a",
      tools: { pay: { inputSchema: anything, execute: () => ++paid } },
      [name]: { pay: "user-approval" },
    };
    const model = createScriptedModel([{ calls: [{ tool: "pay", input: {} }] }, "paid"]);
    const result = await createExecutor({ model }).run(agent, "go");
    expect([result.status, result.error?.code, paid]).toEqual(["failed", "RUN_AGENT_INVALID", 0]);
    expect(result.error?.message).toContain(name);
  },
);

test("a history that ends with an answer is not the answer", async () => {
  const model = createScriptedModel(["unused", "new answer"]);
  const history = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "old answer" },
  ] as const;
  const result = await createExecutor({ model }).run({ id: "a" }, history);
  expect([result.output, result.steps]).toEqual(["new answer", 1]);
});

test("the body of a generator runs, and its last value is the result", async () => {
  const did: number[] = [];
  const agent = {
    id: "a",
    tools: {
      count: {
        inputSchema: anything,
        async *execute() {
          for (const n of [1, 2]) {
            did.push(n);
            yield n;
          }
        },
      },
    },
  };
  const store = createMemoryRunStore();
  const model = createScriptedModel([{ calls: [{ tool: "count", input: {} }] }, "counted"]);
  const { runId } = await createExecutor({ model, store }).run(agent, "go");
  expect(did).toEqual([1, 2]);
  expect(JSON.stringify((await store.load(runId))!.transcript)).toContain('"value":2');
});

test("a bigint in a transformed input does not keep the run from ending", async () => {
  const store = createMemoryRunStore();
  const agent = {
    id: "a",
    tools: {
      big: {
        inputSchema: z.object({ n: z.string().transform(BigInt) }),
        execute: ({ n }: { n: bigint }) => String(n),
      },
    },
  };
  const model = createScriptedModel([{ calls: [{ tool: "big", input: { n: "12" } }] }, "done"]);
  const { runId, status } = await createExecutor({ model, store }).run(agent, "go");
  expect([status, (await store.head(runId))!.status]).toEqual(["completed", "completed"]);
});

test.each(["length", "content-filter"] as const)(
  "an answer cut off by %s is not an empty answer",
  async (unified) => {
    const model = new MockLanguageModelV4({
      doGenerate: async () => ({
        content: [],
        finishReason: { unified, raw: unified },
        usage: USAGE,
        warnings: [],
      }),
    });
    const result = await createExecutor({ model }).run({ id: "a" }, "go");
    expect([result.status, result.error?.code]).toEqual(["failed", "RUN_MODEL_FAILED"]);
    expect(result.error?.message).toContain(unified);
  },
);

test("data that looks like stored bytes stays data", async () => {
  const store = createMemoryRunStore();
  const value = { $bytes: "aGk=" };
  const agent = { id: "a", tools: { look: { inputSchema: anything, execute: () => value } } };
  const model = createScriptedModel([{ calls: [{ tool: "look", input: { nested: value } }] }, "seen"]);
  const { runId } = await createExecutor({ model, store }).run(agent, "go");
  const [, asked, answered] = (await store.load(runId))!.transcript.map(({ message }) => message.content);
  expect(asked).toMatchObject([{ input: { nested: value } }]);
  expect(answered).toMatchObject([{ output: { value } }]);
});

test("a live owner that was busy past its lease keeps its run", async () => {
  const clock = createSimulatedClock();
  const backend = createMemoryBackend();
  const machineOf = (pid: number): Machine => {
    const identify = (other: number) => ({ pid: other, startTime: "1", bootId: "b" });
    const processes = { self: () => identify(pid), identify, bootId: () => "b", hostName: () => "host" };
    return { ...systemMachine, clock, processes };
  };
  const first = createRunStore(backend, { machine: machineOf(1), leaseMs: 1000 });
  const second = createRunStore(backend, { machine: machineOf(2), leaseMs: 1000 });
  const started = Promise.withResolvers<void>();
  const agent = {
    id: "a",
    tools: {
      slow: {
        inputSchema: anything,
        execute: () => {
          started.resolve();
          return new Promise(() => {});
        },
      },
    },
  };
  const model = createScriptedModel([{ calls: [{ tool: "slow", input: {} }] }, "done"]);
  void createExecutor({ model, store: first, machine: machineOf(1) }).run(agent, "go", { runId: "r" });
  await started.promise;
  // The process is blocked: its timers do not fire, so the clock moves without renewing.
  const { leaseUntilMs } = (await first.head("r"))!;
  const late = createRunStore(backend, {
    machine: { ...machineOf(2), clock: { ...clock, nowMs: () => leaseUntilMs + 60_000 } },
  });
  expect(await late.claim("r")).toBeUndefined();
  expect(await second.claim("r")).toBeUndefined();
});
