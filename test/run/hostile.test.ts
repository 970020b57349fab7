// Misbehaving tools, models and hosts that throw or return anything, or never answer: the run ends with a clear
// error, its record is closed, and the host keeps running.
import { jsonSchema } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { describe, expect, test } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  type Agent,
  createExecutor,
  createMemoryRunStore,
  type RunPorts,
  recoverInterrupted,
  ShutdownError,
  UnknownOutcomeError,
} from "../../src/run/index.ts";
import { claimRun, loadRun } from "../../src/run/log/run-log.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { bench, call, never, onWrite, openTool, passTime, records, restarted, tool } from "./bench.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

const TOKEN = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
const bare = Object.create(null) as object;
const throwingMessage = Object.defineProperty(new Error("x"), "message", {
  get: () => {
    throw new Error("no message either");
  },
});
const circular: Record<string, unknown> = { name: "loop" };
circular.self = circular;

describe("misbehaving tools", () => {
  test.each([
    ["an object without a prototype", bare],
    ["an error whose message throws", throwingMessage],
    ["a symbol", Symbol("s")],
    ["null", null],
    ["an error without a message", new TypeError()],
  ])("one that throws %s is reported to the model", async (_, thrown) => {
    const { executor, store } = bench([call("send"), "I see"]);
    const send = tool("once", () => {
      throw thrown;
    });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "I see" });
    const [effect] = await store.effects("r");
    expect(effect).toMatchObject({ state: "failed", error: expect.stringMatching(/\w/) });
  });

  test.each([
    ["a circular object", circular, /The call succeeded; its result is not JSON/],
    ["a big integer", { id: 2n ** 70n }, /1180591620717411303424/],
    [
      "something whose toJSON throws",
      {
        toJSON: () => {
          throw bare;
        },
      },
      /The call succeeded/,
    ],
    ["nothing", undefined, /null/],
    ["a function", () => 1, /null/],
    ["five megabytes", "x".repeat(5_000_000), /x{5000}/],
  ])("one that returns %s counts as done, and the run continues", async (_, value, expected) => {
    let ran = 0;
    const { executor, store } = bench([call("send"), "fine"]);
    const send = tool("once", () => {
      ran += 1;
      return value;
    });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "fine", warnings: [] });
    expect(ran).toBe(1);
    expect(await store.effects("r")).toMatchObject([{ state: "done" }]);
    expect(JSON.stringify((await store.history("r"))[2])).toMatch(expected);
  });

  test("one that mutates its input changes neither the transcript nor the next attempt", async () => {
    const seen: unknown[] = [];
    const { executor, store } = bench([call("put", 7), "ok"], { throttleMs: 60_000 });
    const put = tool("idempotent", (input) => {
      seen.push({ ...input });
      input.n = "changed";
      if (seen.length < 2) throw new UnknownOutcomeError("again");
    });
    const { status } = await executor.run({ id: "a", tools: { put } }, "go", { runId: "r" });
    expect(status).toBe("completed");
    expect(seen).toEqual([{ n: 7 }, { n: 7 }]);
    expect(JSON.stringify(await store.history("r"))).not.toContain("changed");
  });

  test("one that is stopped before its call has no unknown outcome", async () => {
    const first = bench([call("send"), "end"]);
    const stop = new AbortController();
    // The stop arrives while `started` is being written, before the tool is called.
    const restore = onWrite(first.store, async (write, proceed) => {
      const verdict = await proceed();
      if (records(write, "started")) stop.abort(new ShutdownError());
      return verdict;
    });
    let sent = 0;
    const agent: Agent = { id: "a", tools: { send: tool("once", () => ++sent) } };
    const result = await first.executor.run(agent, "go", { runId: "r", signal: stop.signal });
    expect(result).toMatchObject({ status: "shutdown", unknownEffects: [] });
    expect(await first.store.effects("r")).toMatchObject([{ state: "prepared", attempts: 0 }]);
    restore();
    const second = restarted(first, [call("send"), "end"]);
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed" } });
    expect(sent).toBe(1);
  });

  test("one whose start cannot be recorded is not called, and stays prepared in the ledger", async () => {
    const { executor, store } = bench([call("send"), "end"]);
    let isBroken = true;
    onWrite(store, async (write, proceed) => {
      if (isBroken && records(write, "started")) {
        isBroken = false;
        throw new Error("the write failed");
      }
      return proceed();
    });
    let sent = 0;
    const agent: Agent = { id: "a", tools: { send: tool("once", () => ++sent) } };
    const result = await executor.run(agent, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "failed", unknownEffects: [] });
    expect(sent).toBe(0);
    expect(await store.effects("r")).toMatchObject([{ state: "prepared" }]);
  });

  test("one that never ends is abandoned at the run's timeout with an unknown outcome", async () => {
    const { executor, machine, store } = bench([call("send"), "end"]);
    const send = openTool("once");
    const agent: Agent = { id: "a", tools: { send: send.tool }, timeoutMs: 1000 };
    const running = executor.run(agent, "go", { runId: "r" });
    await send.called;
    expect(await passTime(machine.clock, running)).toMatchObject({
      status: "timeout",
      unknownEffects: [{ id: "r.1.0" }],
    });
    expect((await store.head("r"))?.status).toBe("timeout");
  });

  test("a reconcile function that throws parks the run", async () => {
    const first = bench([call("act"), "end"]);
    const stop = new AbortController();
    const stopped = Promise.withResolvers<void>();
    const reconcile = () => {
      throw bare;
    };
    const act = tool(
      "reconcile",
      async () => {
        stop.abort(new ShutdownError());
        stopped.resolve();
        await new Promise(() => {});
      },
      { reconcile },
    );
    const agent: Agent = { id: "a", tools: { act } };
    const running = first.executor.run(agent, "go", { runId: "r", signal: stop.signal });
    await stopped.promise;
    await passTime(first.machine.clock, running);
    const second = restarted(first, [call("act"), "end"]);
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "needs-human" } });
    expect((await second.store.effects("r"))[0]?.error).toContain("could not reconcile");
  });
});

describe("misbehaving models", () => {
  test.each([
    ["an object without a prototype", bare],
    ["an error whose message throws", throwingMessage],
    ["undefined", undefined],
  ])("one that throws %s fails the run and closes its record", async (_, thrown) => {
    const { executor, store } = bench([() => Promise.reject(thrown)]);
    const result = await executor.run({ id: "a" }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_MODEL_FAILED" } });
    expect((await store.head("r"))?.status).toBe("failed");
    expect(await store.listInterrupted()).toEqual([]);
  });

  const modelReturning = (answer: object) =>
    new MockLanguageModelV4({ doGenerate: (async () => ({ warnings: [], ...answer })) as never });
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const stop = { unified: "stop", raw: undefined };
  test.each([
    [
      "counts in fractions",
      {
        content: [{ type: "text", text: "x" }],
        finishReason: stop,
        usage: { inputTokens: { total: 1.5 }, outputTokens: { total: Number.NaN } },
      },
    ],
    ["returns no content", { content: [], finishReason: stop, usage }],
    [
      "calls without an id",
      { content: [{ type: "tool-call", toolName: "look", input: '{"n":1}' }], finishReason: stop, usage },
    ],
    [
      "calls without a name",
      { content: [{ type: "tool-call", toolCallId: "1", input: "{}" }], finishReason: stop, usage },
    ],
    [
      "calls __proto__",
      {
        content: [{ type: "tool-call", toolCallId: "1", toolName: "__proto__", input: "{}" }],
        finishReason: stop,
        usage,
      },
    ],
    ["returns a part of an unknown type", { content: [{ type: "dance" }], finishReason: stop, usage }],
    [
      "returns class instances",
      {
        content: [
          { type: "text", text: "x", providerMetadata: { p: { at: new (class Own {})(), f: () => 1 } } },
        ],
        finishReason: stop,
        usage,
      },
    ],
    ["returns an empty object", {}],
    ["returns null", null as never],
  ])("one that %s leaves a closed record", async (_, answer) => {
    const machine = createSimulatedMachine({ disk: systemDisk });
    const store = createMemoryRunStore({ machine });
    const executor = createExecutor({
      model: modelReturning(answer),
      machine,
      store,
      defaults: { maxRetries: 0, maxIterations: 3 },
    });
    const agent: Agent = { id: "a", tools: { look: tool("read", () => 1) } };
    const result = await executor.run(agent, "go", { runId: "r" });
    expect(["completed", "failed"]).toContain(result.status);
    expect((await store.head("r"))?.status).toBe(result.status);
    const record = await store.load("r");
    expect(Number.isInteger(record?.head.usage.inputTokens)).toBe(true);
    expect(Number.isInteger(record?.head.usage.outputTokens)).toBe(true);
  });

  test.each([
    ["reasons", (delta: string) => ({ type: "reasoning-delta", id: "1", delta }), "reasoning-start"],
    [
      "writes the input of a call",
      (delta: string) => ({ type: "tool-input-delta", id: "1", delta }),
      "tool-input-start",
    ],
  ])("one that %s endlessly is aborted, and the watchdog sees activity", async (_, part, start) => {
    const chunk = "x".repeat(100_000);
    async function* forever() {
      yield { type: "stream-start", warnings: [] };
      yield { type: start, id: "1", toolName: "look" };
      for (;;) yield part(chunk);
    }
    const model = new MockLanguageModelV4({
      doStream: async () => ({ stream: ReadableStream.from(forever()) }) as never,
    });
    let activities = 0;
    const quiet = { stepDone: () => {}, toolStarted: () => {}, toolEnded: () => {}, stop: () => {} };
    const activity = () => {
      activities += 1;
    };
    const watchdog = { watch: () => ({ ...quiet, activity }) };
    const agent: Agent = { id: "a", stream: true, tools: { look: tool("read", () => 1) } };
    const result = await createExecutor({ model, ports: { watchdog } }).run(agent, "go");
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_MODEL_ENDLESS" } });
    expect(activities).toBeGreaterThan(10);
  });

  test("one that stops in the middle of a stream times out", async () => {
    const more = never();
    async function* silent() {
      yield { type: "stream-start", warnings: [] };
      await more.wait();
    }
    const model = new MockLanguageModelV4({
      doStream: async () => ({ stream: ReadableStream.from(silent()) }) as never,
    });
    const machine = createSimulatedMachine({ disk: systemDisk });
    const running = createExecutor({ model, machine }).run(
      { id: "a", stream: true, stepTimeoutMs: 1000 },
      "go",
    );
    await more.awaited;
    expect(await passTime(machine.clock, running)).toMatchObject({
      status: "timeout",
      error: { code: "RUN_TIMEOUT" },
    });
  });
});

describe("misbehaving hosts", () => {
  test("ports that reject later do not end the process", async () => {
    const later = async () => {
      throw bare;
    };
    const ports: RunPorts = {
      onWarning: later as never,
      onText: later as never,
      audit: { record: later },
      budget: { check: () => undefined, commit: later },
      watchdog: {
        watch: () => ({
          activity: later as never,
          stepDone: later as never,
          toolStarted: () => {
            throw bare;
          },
          toolEnded: later as never,
          stop: later as never,
        }),
      },
    };
    const { executor, store } = bench([call("send"), "fine"], { ports });
    let sent = 0;
    const agent: Agent = { id: "a", tools: { send: tool("once", () => ++sent) } };
    const result = await executor.run(agent, "go", { runId: "r" });
    // An unhandled rejection would end the process in this turn.
    await new Promise((resolve) => setImmediate(resolve));
    expect(result).toMatchObject({ status: "completed", output: "fine" });
    expect(sent).toBe(1);
    expect(result.warnings.join()).toMatch(/watchdog threw.*audit log was not written/s);
    expect((await store.head("r"))?.status).toBe("completed");
  });

  test("an audit log that never answers delays the end by the grace period and adds a warning", async () => {
    const end = never<void>();
    const record: NonNullable<RunPorts["audit"]>["record"] = (_, { kind }) =>
      kind === "end" ? end.wait() : new Promise<void>(() => {});
    const { executor, machine } = bench(["fine"], { ports: { audit: { record } } });
    const running = executor.run({ id: "a" }, "go");
    await end.awaited;
    const result = await passTime(machine.clock, running);
    expect(result).toMatchObject({ status: "completed" });
    expect(result.warnings.join()).toContain("did not write");
  });

  test("a budget that never answers is bounded by the run's timeout", async () => {
    const check = never<undefined>();
    const ports: RunPorts = { budget: { check: check.wait, commit: () => {} } };
    const { executor, machine, store } = bench(["fine"], { ports });
    const running = executor.run({ id: "a", timeoutMs: 1000 }, "go", { runId: "r" });
    await check.awaited;
    expect(await passTime(machine.clock, running)).toMatchObject({ status: "timeout" });
    expect((await store.head("r"))?.status).toBe("timeout");
  });

  test("a failing budget check ends the run, even with a fallback", async () => {
    const ports: RunPorts = {
      budget: {
        check: () => {
          throw new Error("no database");
        },
        commit: () => {},
      },
    };
    const { executor } = bench(["fine"], { ports });
    const agent: Agent = { id: "a", phases: [{ name: "p", prompt: "p", fallback: "f" }] };
    const result = await executor.run(agent, "go");
    expect(result.status).toBe("failed");
    expect(result.error?.message).toContain("the budget check failed: no database");
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    "a limit of %s steps is refused",
    async (maxIterations) => {
      const { executor, model } = bench(["x"]);
      await expect(executor.run({ id: "a" }, "go", { maxIterations })).rejects.toMatchObject({
        code: "USAGE",
        hint: expect.stringContaining("positive integer"),
      });
      const own = await executor.run({ id: "a", maxIterations }, "go");
      expect(own).toMatchObject({ status: "failed", error: { code: "RUN_AGENT_INVALID" } });
      const phases = [{ name: "p", prompt: "p", maxIterations }];
      expect(await executor.run({ id: "a", phases }, "go")).toMatchObject({ status: "failed" });
      expect(model.asked).toBe(0);
    },
  );

  test.each(["timeoutMs", "stepTimeoutMs"])("an invalid %s is refused", async (name) => {
    const { executor } = bench(["x"]);
    for (const limit of [0, -5, Number.NaN]) {
      expect(await executor.run({ id: "a", [name]: limit }, "go")).toMatchObject({
        error: { code: "RUN_AGENT_INVALID", message: expect.stringContaining(name) },
      });
    }
  });

  test("an invalid raise of the step limit is ignored", async () => {
    const silent = { activity: () => {}, toolStarted: () => {}, toolEnded: () => {}, stop: () => {} };
    const watchdog: RunPorts["watchdog"] = {
      watch: (_, { raiseStepsBy }) => ({
        ...silent,
        stepDone: () => {
          for (const steps of [Number.NaN, -3, "2" as never, undefined as never]) raiseStepsBy(steps);
        },
      }),
    };
    const script: Line[] = Array.from({ length: 9 }, () => call("look"));
    const { executor } = bench(script, { ports: { watchdog } });
    const agent: Agent = { id: "a", maxIterations: 2, tools: { look: tool("read", () => 1) } };
    const result = await executor.run(agent, "go");
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_STEPS_EXHAUSTED" } });
    expect(result.steps).toBeLessThan(9);
  });

  test("a resume with a new input is refused", async () => {
    const { executor, store } = bench(["x"]);
    const down = bench(["x"]);
    await down.executor.shutdown();
    await executor.shutdown();
    await executor.run({ id: "a" }, "go", { runId: "r" });
    const loaded = (await loadRun(store.log, "r"))!;
    const lease = (await claimRun(store.log, loaded.head))!;
    await expect(executor.run({ id: "a" }, "more", { resume: { lease, loaded } })).rejects.toMatchObject({
      code: "USAGE",
    });
  });

  test("an agentFor that throws skips only its run", async () => {
    const { executor, store } = bench(["x"]);
    await executor.shutdown();
    for (const runId of ["r1", "r2"]) await executor.run({ id: "a" }, "go", { runId });
    const next = restarted({ ...bench(["x"]), store, executor } as never, ["end"]);
    const recovered = await recoverInterrupted(next.executor, {
      agentFor: ({ runId }) => {
        if (runId === "r1") throw bare;
        return { id: "a" };
      },
    });
    expect(recovered).toMatchObject([
      { runId: "r1", how: "skipped" },
      { runId: "r2", how: "resumed" },
    ]);
  });

  test.each([0, -1, Number.NaN, 2.5, Number.POSITIVE_INFINITY])(
    "a recovery with concurrency %s resumes all runs",
    async (concurrency) => {
      const { executor, store, machine } = bench(["x"]);
      await executor.shutdown();
      for (const runId of ["r1", "r2", "r3"]) await executor.run({ id: "a" }, "go", { runId });
      const next = restarted({ ...bench(["x"]), store, machine }, ["end"]);
      const agentFor = () => ({ id: "a" });
      const recovered = await recoverInterrupted(next.executor, { agentFor, concurrency });
      expect(recovered.map(({ how }) => how)).toEqual(["resumed", "resumed", "resumed"]);
    },
  );

  test("an invalid lease or throttle is refused", () => {
    for (const leaseMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => createMemoryRunStore({ leaseMs })).toThrow(/leaseMs/);
    }
    for (const throttleMs of [-1, Number.NaN]) {
      expect(() => createExecutor({ store: createMemoryRunStore(), checkpoint: { throttleMs } })).toThrow(
        /throttleMs/,
      );
    }
  });

  test("a run without saves keeps its lease, however short it is", async () => {
    const machine = createSimulatedMachine({ disk: systemDisk });
    const store = createMemoryRunStore({ machine, leaseMs: 3000 });
    const executor = createExecutor({ model: createScriptedModel([call("look"), "end"]), machine, store });
    const look = openTool("read");
    const running = executor.run({ id: "a", tools: { look: look.tool } }, "go", { runId: "r" });
    await look.called;
    for (let i = 0; i < 20; i += 1) {
      await machine.clock.advance(1000);
      expect(await store.listInterrupted()).toEqual([]);
    }
    look.answer(1);
    expect(await running).toMatchObject({ status: "completed" });
  });

  test("a failed save does not advance the throttle's clock", async () => {
    const script = [...Array.from({ length: 5 }, () => call("look")), "end"];
    const { executor, store } = bench(script, { throttleMs: 60_000 });
    const tries: { seq: number; calls: number }[] = [];
    onWrite(store, async ({ seq }, proceed) => {
      tries.push({ seq, calls });
      if (tries.length === 1) throw new Error("not now");
      return proceed();
    });
    let calls = 0;
    const look = tool("read", () => {
      calls += 1;
    });
    const result = await executor.run({ id: "a", tools: { look } }, "go", { runId: "r" });
    // The first write failed, so the next step writes it again instead of waiting for the throttle.
    expect(tries.slice(0, 2)).toEqual([
      { seq: 1, calls: 1 },
      { seq: 1, calls: 2 },
    ]);
    expect(result).toMatchObject({ status: "completed" });
    expect(result.warnings).toEqual(["a step was not saved yet: not now"]);
    expect((await store.load("r"))?.transcript.length).toBe(12);
  });
});

describe("resolved effects", () => {
  async function parked(inputHasSecret = false) {
    const input = inputHasSecret ? { n: 1, note: TOKEN } : { n: 1 };
    const line: Line = { calls: [{ tool: "send", input }] };
    const first = bench([line, "end"]);
    const send = tool("once", () => {
      throw new UnknownOutcomeError("lost");
    });
    const agent: Agent = {
      id: "a",
      tools: { send: { ...send, inputSchema: jsonSchema({ type: "object" }) } },
    };
    expect(await first.executor.run(agent, "go", { runId: "r" })).toMatchObject({ status: "needs-human" });
    return { ...first, agent };
  }
  test("`retry` for a tool that is gone returns an error to the model", async () => {
    const { store, executor } = await parked();
    await store.resolve("r.1.0", { outcome: "retry" });
    const [resumed] = await recoverInterrupted(executor, { agentFor: () => ({ id: "a" }) });
    expect(resumed).toMatchObject({ result: { status: "completed" } });
    expect(JSON.stringify(await store.history("r"))).toContain("no such tool");
  });
  test("`retry` for a call with a redacted input returns an error to the model", async () => {
    const { store, executor, agent } = await parked(true);
    await store.resolve("r.1.0", { outcome: "retry" });
    const [resumed] = await recoverInterrupted(executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed" } });
    expect(JSON.stringify(await store.history("r"))).toContain("repeat it if it is still needed");
  });
});
