// The kernel: how a run executes, how it ends, and what it records.
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { describe, expect, test } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  type Agent,
  createExecutor,
  createMemoryRunStore,
  type DurableTool,
  type RunPorts,
  recoverInterrupted,
  ShutdownError,
  UnknownOutcomeError,
} from "../../src/run/index.ts";
import { claimRun } from "../../src/run/log/run-log.ts";
import { createSimulatedMachine } from "../../src/testing/simulated-machine.ts";
import { bench, call, never, openTool, passTime, restarted, tool } from "./bench.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

describe("a run", () => {
  test("without a store runs in memory", async () => {
    const executor = createExecutor({ model: createScriptedModel(["hello"]) });
    const result = await executor.run({ id: "a" }, "hi");
    expect(result).toMatchObject({
      status: "completed",
      output: "hello",
      steps: 1,
      durable: false,
      error: null,
    });
    expect(result.usage).toEqual({ inputTokens: 10, outputTokens: 5 });
  });

  test("calls tools one step at a time and records each call before and after", async () => {
    const seen: string[] = [];
    const { executor, store } = bench([call("send", 7), "done"]);
    const send = tool("once", async ({ n }, context) => {
      const [line] = await store.effects(context.info.runId);
      seen.push(`${n} ${context.effectId} ${line?.state}`);
      return { sent: n };
    });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "done", steps: 2, durable: true });
    expect(seen).toEqual(["7 r.1.0 started"]);
    const record = await store.load("r");
    expect(record?.effects).toMatchObject([
      { id: "r.1.0", state: "done", attempts: 1, class: "once", output: { sent: 7 } },
    ]);
    expect(record?.transcript.map(({ message }) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(record?.head.status).toBe("completed");
    expect(record?.output).toBe("done");
  });

  test("consecutive reads run concurrently, effects alone and in order", async () => {
    let active = 0;
    let maxActive = 0;
    const order: string[] = [];
    const slow = async () => {
      maxActive = Math.max(maxActive, ++active);
      await new Promise((resolve) => setImmediate(resolve));
      active -= 1;
    };
    const calls = ["look", "look", "write", "write", "look"].map((name, n) => ({ tool: name, input: { n } }));
    const { executor } = bench([{ calls }, "end"]);
    const note = (name: string) => async (input: { n: number }) => {
      await slow();
      order.push(`${name}${input.n}`);
    };
    const look = tool("read", note("look"));
    const write = tool("idempotent", note("write"));
    await executor.run({ id: "a", tools: { look, write } }, "go");
    expect(maxActive).toBe(2);
    expect(order).toEqual(["look0", "look1", "write2", "write3", "look4"]);
  });

  test("is limited in steps", async () => {
    const { executor, store } = bench(Array.from({ length: 9 }, () => call("look")));
    const agent: Agent = { id: "a", maxIterations: 3, tools: { look: tool("read", () => 1) } };
    const result = await executor.run(agent, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "failed", steps: 3, error: { code: "RUN_STEPS_EXHAUSTED" } });
    expect((await store.head("r"))?.status).toBe("failed");
  });

  test("that cannot be made durable warns and continues, unless durability is required", async () => {
    const broken = { begin: () => Promise.reject(new Error("no disk")) };
    const executor = (required: boolean) =>
      createExecutor({
        model: createScriptedModel(["ok"]),
        ports: { checkpointer: { ...broken, required } },
      });
    const soft = await executor(false).run({ id: "a" }, "go");
    expect(soft).toMatchObject({ status: "completed", durable: false });
    expect(soft.warnings[0]).toContain("no disk");
    expect(await executor(true).run({ id: "a" }, "go")).toMatchObject({ status: "failed" });
  });

  test("survives ports that throw", async () => {
    const boom = () => {
      throw new Error("boom");
    };
    const ports: RunPorts = {
      watchdog: { watch: boom },
      audit: { record: boom },
      budget: { check: () => undefined, commit: boom },
      onWarning: boom,
    };
    const { executor } = bench(["fine"], { ports });
    const result = await executor.run({ id: "a" }, "go");
    expect(result).toMatchObject({ status: "completed", output: "fine" });
    expect(result.warnings.join()).toContain("boom");
  });

  test("ends when its budget is spent", async () => {
    const { executor } = bench(["x"], {
      ports: { budget: { check: () => "100 tokens of 100", commit: () => {} } },
    });
    expect(await executor.run({ id: "a" }, "go")).toMatchObject({
      status: "failed",
      error: { code: "RUN_BUDGET_SPENT" },
    });
  });

  test("an invalid agent fails the run and closes the record", async () => {
    const { executor, store } = bench(["x"]);
    const agent: Agent = { id: "a", tools: { bad: tool("reconcile", () => 1) } };
    expect(await executor.run(agent, "go", { runId: "r" })).toMatchObject({
      error: { code: "RUN_AGENT_INVALID" },
    });
    expect((await store.head("r"))?.status).toBe("failed");
    expect(await store.listInterrupted()).toEqual([]);
  });
});

describe("failing models", () => {
  test("one that throws fails the run", async () => {
    const { executor, store } = bench([() => Promise.reject(new Error("503"))]);
    const result = await executor.run({ id: "a" }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_MODEL_FAILED" } });
    expect((await store.load("r"))?.error?.message).toContain("503");
  });
  test("one that hangs times out", async () => {
    const answer = never<string>();
    const { executor, store, machine } = bench([answer.wait]);
    const running = executor.run({ id: "a", stepTimeoutMs: 1000 }, "go", { runId: "r" });
    await answer.awaited;
    expect(await passTime(machine.clock, running)).toMatchObject({
      status: "timeout",
      error: { code: "RUN_TIMEOUT" },
    });
    expect((await store.head("r"))?.status).toBe("timeout");
  });
  test.each([
    ["a tool that does not exist", { calls: [{ tool: "nope", input: { n: 1 } }] }],
    ["input that is not JSON", { calls: [{ tool: "send", input: "{oops" }] }],
  ] as [string, Line][])("%s is answered, not run", async (_, line) => {
    let ran = 0;
    const { executor, store } = bench([line, "sorry"]);
    const send = tool("once", () => ++ran);
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "sorry" });
    expect(ran).toBe(0);
    const answered = (await store.history("r")).filter(({ message }) => message.role === "tool");
    expect(JSON.stringify(answered)).toContain("error");
  });
  test("two calls of one step with the same id both get a result", async () => {
    const ran: number[] = [];
    const calls = [1, 2].map((n) => ({ tool: "send", input: { n }, id: "same" }));
    const { executor } = bench([{ calls }, "ok"]);
    await executor.run({ id: "a", tools: { send: tool("once", ({ n }) => ran.push(n)) } }, "go");
    expect(ran.length).toBe(2);
  });
  test("one that streams endlessly is aborted", async () => {
    const chunk = "x".repeat(100_000);
    async function* forever() {
      yield { type: "stream-start", warnings: [] };
      yield { type: "text-start", id: "1" };
      for (;;) yield { type: "text-delta", id: "1", delta: chunk };
    }
    const model = new MockLanguageModelV4({
      doStream: async () => ({ stream: ReadableStream.from(forever()) }) as never,
    });
    const result = await createExecutor({ model }).run({ id: "a", stream: true }, "go");
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_MODEL_ENDLESS" } });
  });
  test("one that streams passes each piece of text to the host", async () => {
    const chunks = [
      { type: "stream-start", warnings: [] },
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "hel" },
      { type: "text-delta", id: "1", delta: "lo" },
      { type: "text-end", id: "1" },
      {
        type: "finish",
        finishReason: { unified: "stop", raw: undefined },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 2 } },
      },
    ];
    const model = new MockLanguageModelV4({
      doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) as never,
    });
    const pieces: string[] = [];
    const executor = createExecutor({ model, ports: { onText: (_, text) => pieces.push(text) } });
    expect(await executor.run({ id: "a", stream: true }, "go")).toMatchObject({
      status: "completed",
      output: "hello",
    });
    expect(pieces).toEqual(["hel", "lo"]);
  });
});

describe("failing tools", () => {
  test.each([
    ["an error", new Error("no route"), "no route"],
    ["undefined", undefined, "undefined"],
    ["a string", "plain", "plain"],
  ])("one that throws %s is reported to the model", async (_, thrown, text) => {
    const { executor, store } = bench([call("send"), "I see"]);
    const send = tool("once", () => {
      throw thrown;
    });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "I see" });
    expect(await store.effects("r")).toMatchObject([
      { state: "failed", error: expect.stringContaining(text) },
    ]);
  });
  test("a once tool with an unknown outcome parks the run until a human resolves it", async () => {
    const first = bench([call("send"), "sent"]);
    const send = tool("once", () => {
      throw new UnknownOutcomeError("timed out after the request went out");
    });
    const agent: Agent = { id: "a", tools: { send } };
    const result = await first.executor.run(agent, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "needs-human", error: { code: "RUN_NEEDS_HUMAN" } });
    expect(result.unknownEffects).toMatchObject([{ id: "r.1.0", state: "unknown" }]);
    expect(await recoverInterrupted(first.executor, { agentFor: () => agent })).toEqual([]);
    await first.store.resolve("r.1.0", { outcome: "done", output: "it went through" });
    const [resumed] = await recoverInterrupted(first.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ how: "resumed", result: { status: "completed", output: "sent" } });
    expect(JSON.stringify(await first.store.history("r"))).toContain("it went through");
  });
  test("an idempotent tool with an unknown outcome is called again with the same id", async () => {
    const keys: string[] = [];
    const { executor } = bench([call("put"), "ok"]);
    const put = tool("idempotent", (_, { effectId }) => {
      keys.push(effectId);
      if (keys.length < 3) throw new UnknownOutcomeError("lost");
      return 1;
    });
    expect(await executor.run({ id: "a", tools: { put } }, "go")).toMatchObject({ status: "completed" });
    expect(new Set(keys).size).toBe(1);
    expect(keys.length).toBe(3);
  });
});

describe("endings", () => {
  test.each([
    ["an abort cancels", new Error("user left"), "cancelled", "cancelled"],
    ["a shutdown leaves the record", new ShutdownError(), "shutdown", "running"],
  ])("%s", async (_, reason, status, recorded) => {
    const { executor, store } = bench([call("hang"), "end"]);
    const stop = new AbortController();
    const hang = openTool("read");
    const running = executor.run({ id: "a", tools: { hang: hang.tool } }, "go", {
      runId: "r",
      signal: stop.signal,
    });
    await hang.called;
    stop.abort(reason);
    expect(await running).toMatchObject({ status });
    expect((await store.head("r"))?.status).toBe(recorded);
  });
  test("the timeout ends it", async () => {
    const { executor, store, machine } = bench([call("hang"), "end"]);
    const hang = openTool("read");
    const agent: Agent = { id: "a", tools: { hang: hang.tool }, timeoutMs: 5000 };
    const running = executor.run(agent, "go", { runId: "r" });
    await hang.called;
    expect(await passTime(machine.clock, running)).toMatchObject({ status: "timeout" });
    expect((await store.head("r"))?.status).toBe("timeout");
  });
  test("a stopped run waits for an effect in flight; after the grace period its outcome is unknown", async () => {
    const first = bench([call("send"), "end"]);
    const stop = new AbortController();
    const send = openTool("once");
    const running = first.executor.run({ id: "a", tools: { send: send.tool } }, "go", {
      runId: "r",
      signal: stop.signal,
    });
    await send.called;
    stop.abort();
    const result = await passTime(first.machine.clock, running);
    expect(result).toMatchObject({ status: "cancelled", unknownEffects: [{ id: "r.1.0" }] });
    expect(await first.store.effects("r")).toMatchObject([{ state: "unknown" }]);
  });
  test("an effect that ends within the grace period has a known outcome", async () => {
    const first = bench([call("send"), "end"]);
    const send = openTool("once");
    const running = first.executor.run({ id: "a", tools: { send: send.tool } }, "go", { runId: "r" });
    await send.called;
    const down = first.executor.shutdown();
    send.answer("sent");
    await down;
    expect(await running).toMatchObject({ status: "shutdown" });
    expect(await first.store.effects("r")).toMatchObject([{ state: "done" }]);
    const second = restarted(first, [call("send"), "end"]);
    const [resumed] = await recoverInterrupted(second.executor, {
      agentFor: () => ({ id: "a", tools: { send: tool("once", () => expect.unreachable()) } }),
    });
    expect(resumed).toMatchObject({ how: "resumed", result: { status: "completed", output: "end" } });
  });
});

describe("resume", () => {
  async function interrupted(
    effect: DurableTool["effect"],
    run: () => unknown,
    more: Partial<DurableTool> = {},
  ) {
    const script = [call("act"), "end"];
    const first = bench(script);
    const stop = new AbortController();
    const stopped = Promise.withResolvers<void>();
    const act = tool(
      effect,
      async () => {
        await run();
        stop.abort(new ShutdownError());
        stopped.resolve();
        await new Promise(() => {});
      },
      more,
    );
    const running = first.executor.run({ id: "a", tools: { act } }, "go", {
      runId: "r",
      signal: stop.signal,
    });
    await stopped.promise;
    await passTime(first.machine.clock, running);
    return restarted(first, script);
  }
  test("continues without new input and without repeating model calls", async () => {
    let ran = 0;
    const second = await interrupted("idempotent", () => ++ran);
    const agent: Agent = {
      id: "a",
      tools: { act: tool("idempotent", () => ++ran) },
    };
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({
      how: "resumed",
      result: { status: "completed", output: "end", steps: 2 },
    });
    expect(second.model.asked).toBe(1);
    expect(ran).toBe(2);
    expect(await second.store.effects("r")).toMatchObject([{ attempts: 2, state: "done" }]);
  });
  test("a once call whose outcome is unknown parks the run", async () => {
    const second = await interrupted("once", () => {});
    const agent: Agent = { id: "a", tools: { act: tool("once", () => expect.unreachable()) } };
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "needs-human", unknownEffects: [{ id: "r.1.0" }] } });
    expect((await second.store.head("r"))?.status).toBe("needs-human");
  });
  test("a once call stays once, even if a newer agent declares another class", async () => {
    const second = await interrupted("once", () => {});
    const agent: Agent = { id: "a", tools: { act: tool("read", () => expect.unreachable()) } };
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "needs-human" } });
  });
  test.each([
    ["done", { outcome: "done", output: "was there" }, "completed", 0],
    ["not done", { outcome: "not-done" }, "completed", 1],
    ["unknown", { outcome: "unknown" }, "needs-human", 0],
  ] as const)("a reconcile tool answers %s", async (_, answer, status, runs) => {
    let ran = 0;
    const reconcile = () => answer;
    const second = await interrupted("reconcile", () => {}, { reconcile });
    const agent: Agent = { id: "a", tools: { act: tool("reconcile", () => ++ran, { reconcile }) } };
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status } });
    expect(ran).toBe(runs);
  });
  test("an unknown outcome of a removed tool parks the run", async () => {
    const second = await interrupted("idempotent", () => {});
    const [resumed] = await recoverInterrupted(second.executor, {
      agentFor: () => ({ id: "a" }),
    });
    expect(resumed).toMatchObject({ result: { status: "needs-human" } });
  });
  test("a run without an agent here, or too old, is skipped with a reason", async () => {
    const second = await interrupted("read", () => {});
    const none = await recoverInterrupted(second.executor, { agentFor: () => undefined });
    expect(none).toMatchObject([{ how: "skipped", reason: "this host has no agent a" }]);
    await second.machine.clock.advance(10_000);
    const old = await recoverInterrupted(second.executor, {
      agentFor: () => ({ id: "a" }),
      maxAgeMs: 100,
    });
    expect(old).toMatchObject([{ how: "skipped" }]);
    expect((await second.store.listInterrupted()).length).toBe(1);
  });
  test("two concurrent recoveries resume every run once", async () => {
    const machine = createSimulatedMachine({ disk: systemDisk });
    const store = createMemoryRunStore({ machine });
    const down = createExecutor({ model: createScriptedModel(["end"]), machine, store });
    await down.shutdown();
    for (let i = 0; i < 30; i += 1) await down.run({ id: "a" }, "go", { runId: `r${i}` });
    const executors = [1, 2].map(() =>
      createExecutor({ model: createScriptedModel(["end"]), machine, store }),
    );
    const all = (
      await Promise.all(executors.map((each) => recoverInterrupted(each, { agentFor: () => ({ id: "a" }) })))
    ).flat();
    const resumed = all.filter(({ how }) => how === "resumed").map(({ runId }) => runId);
    expect(resumed.length).toBe(30);
    expect(new Set(resumed).size).toBe(30);
  });
  test("an owner that lost its lease stops writing and reports it", async () => {
    const first = bench([call("look"), "end"]);
    const look = openTool("read");
    const running = first.executor.run({ id: "a", tools: { look: look.tool } }, "go", { runId: "r" });
    await look.called;
    const { log } = first.store;
    await log.journal.releaseLease("r", (await first.store.head("r"))!.epoch);
    const lease = await claimRun(log, (await log.journal.readHead("r"))!);
    look.answer(1);
    expect(await running).toMatchObject({ status: "failed", error: { code: "RUN_STALE_LEASE" } });
    expect((await first.store.head("r"))?.epoch).toBe(lease?.epoch);
    expect((await first.store.head("r"))?.status).toBe("running");
  });
});

describe("failing hosts", () => {
  test("a listener that throws is not called again, and the run continues", async () => {
    const chunks = [
      { type: "text-start", id: "1" },
      { type: "text-delta", id: "1", delta: "a" },
      { type: "text-delta", id: "1", delta: "b" },
      { type: "text-end", id: "1" },
      { type: "finish", finishReason: { unified: "stop" }, usage: { inputTokens: {}, outputTokens: {} } },
    ];
    const model = new MockLanguageModelV4({
      doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) as never,
    });
    let calls = 0;
    const onText = () => {
      calls += 1;
      throw new Error("the terminal is closed");
    };
    const result = await createExecutor({ model, ports: { onText } }).run({ id: "a", stream: true }, "go");
    expect(result).toMatchObject({ status: "completed", output: "ab" });
    expect([calls, result.warnings.length]).toEqual([1, 1]);
  });
  test("the audit log is complete when the result is returned", async () => {
    const kinds: string[] = [];
    const record = async (_: unknown, { kind }: { kind: string }) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      kinds.push(kind);
    };
    const { executor } = bench(["x"], { ports: { audit: { record } } });
    await executor.run({ id: "a" }, "go");
    expect(kinds).toEqual(["begin", "step", "end"]);
  });
  test("an agent with fewer phases than the run is refused", async () => {
    const first = bench(["out"]);
    const down = new AbortController();
    const stopAtSecond = ({ outputs }: { outputs: readonly unknown[] }) => {
      if (outputs.length > 0) down.abort(new ShutdownError());
      return "p";
    };
    const phases = ["a", "b", "c"].map((name) => ({ name, prompt: stopAtSecond }));
    await first.executor.run({ id: "a", phases }, "go", { runId: "r", signal: down.signal });
    const second = restarted(first, ["out"]);
    const [resumed] = await recoverInterrupted(second.executor, {
      agentFor: () => ({ id: "a" }),
    });
    expect(resumed).toMatchObject({ result: { status: "failed", error: { code: "RUN_AGENT_INVALID" } } });
  });
});

describe("throttled saves", () => {
  test("defer steps without effects to the end", async () => {
    const script = [call("look"), call("look"), call("look"), "end"];
    const { executor, store, machine } = bench(script, { throttleMs: 60_000 });
    const counts: number[] = [];
    const look = tool("read", async () => {
      await machine.clock.advance(1000);
      counts.push((await store.head("r"))!.messageCount);
      return 1;
    });
    await executor.run({ id: "a", tools: { look } }, "go", { runId: "r" });
    // The first step is written while the second one is requested.
    expect(counts).toEqual([1, 2, 2]);
    expect((await store.load("r"))?.transcript.length).toBe(8);
  });
  test("never defer a save before an effect", async () => {
    const { executor, store } = bench([call("look"), call("send"), "end"], { throttleMs: 60_000 });
    const send = tool("once", async (_, { info }) => (await store.head(info.runId))!.messageCount);
    await executor.run({ id: "a", tools: { look: tool("read", () => 1), send } }, "go", { runId: "r" });
    expect(JSON.stringify(await store.history("r"))).toContain('"value":4');
  });
});

describe("phases", () => {
  const phases = [
    { name: "plan", prompt: "make a plan" },
    { name: "same", prompt: "first" },
    {
      name: "same",
      prompt: ({ outputs }: { outputs: readonly { output: string }[] }) => `second after ${outputs.length}`,
    },
  ];
  test("each has its own conversation and passes its output on", async () => {
    const { executor, store } = bench(["out"]);
    const result = await executor.run({ id: "a", phases }, "the input", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", output: "out", steps: 3 });
    const record = await store.load("r");
    expect(record?.phases.map(({ position, name }) => [position, name])).toEqual([
      [0, "plan"],
      [1, "same"],
      [2, "same"],
    ]);
    const prompts = record?.transcript
      .filter(({ message }) => message.role === "user")
      .map(({ message }) => message.content);
    expect(prompts).toEqual(["the input", "make a plan", "first\n\n## plan\nout", "second after 2"]);
  });
  test("a failed phase with a fallback uses it", async () => {
    const first = bench([() => Promise.reject(new Error("down"))]);
    const agent: Agent = { id: "a", phases: [{ name: "try", prompt: "p", fallback: "without it" }] };
    expect(await first.executor.run(agent, "go")).toMatchObject({
      status: "completed",
      output: "without it",
    });
  });
  test("a resume skips completed phases by position and continues within the interrupted one", async () => {
    const down = new AbortController();
    const first = bench([call("look"), "out"]);
    let looked = 0;
    const look = tool("read", () => {
      looked += 1;
      if (looked === 2) down.abort(new ShutdownError());
      return looked;
    });
    const agent: Agent = { id: "a", phases, tools: { look } };
    expect(await first.executor.run(agent, "in", { runId: "r", signal: down.signal })).toMatchObject({
      status: "shutdown",
    });
    expect((await first.store.head("r"))?.phase).toBe(1);
    const second = restarted(first, [call("look"), "out"]);
    const [resumed] = await recoverInterrupted(second.executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed", steps: 6 } });
    // The read that the shutdown interrupted is repeated.
    expect(looked).toBe(4);
    expect((await second.store.load("r"))?.phases.length).toBe(3);
  });
});
