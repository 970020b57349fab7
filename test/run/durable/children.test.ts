// Child runs: a parent waits while its child waits, for an approval, a time, a message or a human, and continues with it, in
// another process and over several levels. Executors inside tools are also child runs.
import { type FlexibleSchema, isStepCount, jsonSchema, readUIMessageStream, ToolLoopAgent, tool } from "ai";
import { describe, expect, test } from "vitest";
import { systemMachine } from "../../../src/platform/machine.ts";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { durableCall } from "../../../src/run/engine/durable-call.ts";
import { UnknownOutcomeError } from "../../../src/run/engine/ledger.ts";
import { sleep, step, waitFor } from "../../../src/run/engine/scope.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createExecutor } from "../../../src/run/kernel/executor.ts";
import { recoverInterrupted } from "../../../src/run/kernel/recover.ts";
import { resolveEntry } from "../../../src/run/log/resolve.ts";
import { approveRun } from "../../../src/run/operations/approve.ts";
import { cancelRun } from "../../../src/run/operations/cancel.ts";
import { listRuns } from "../../../src/run/operations/list.ts";
import { sendToRun } from "../../../src/run/operations/send.ts";
import { showRun } from "../../../src/run/operations/show.ts";
import { wakeRun } from "../../../src/run/operations/wake.ts";
import { createRunStore } from "../../../src/run/store/store.ts";
import { createSimulatedClock } from "../../../src/testing/simulated-clock.ts";
import { call, type Line, script, USAGE } from "./models.ts";
import { processesOf } from "./processes.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const HOUR = 3_600_000;

/** One process on a journal. */
function host(journal = createMemoryJournal(), pid = 1, clock = systemMachine.clock) {
  return createRunStore({ ...journal }, { machine: { ...processesOf(pid), clock } });
}
type Store = ReturnType<typeof host>;

interface AgentOptions {
  readonly id?: string;
  readonly effect?: "nested" | "once";
  readonly needsApproval?: boolean;
  readonly lines?: readonly Line[];
}

/** An agent with one tool. */
function agentOf(
  store: Store,
  execute: (input: Record<string, unknown>) => unknown,
  { id = "parent", effect = "nested", needsApproval = false, lines }: AgentOptions = {},
) {
  const tools = { work: tool({ inputSchema: anything, needsApproval, execute }) };
  const model = script(lines ?? [[call("work", {})], `${id} is done`]);
  const plain = new ToolLoopAgent({ id, model, tools, stopWhen: isStepCount(9) });
  return durable(plain, { store, effects: { work: effect }, recover: false, graceMs: 10 });
}

/** A parent whose tool calls a child, whose tool does `work`. Counts how often each tool was called. */
function family(store: Store, work: () => unknown, child: AgentOptions = {}) {
  const calls = { parent: 0, child: 0 };
  const inner = agentOf(
    store,
    () => {
      calls.child += 1;
      return work();
    },
    { id: "child", ...child },
  );
  const outer = agentOf(store, async () => {
    calls.parent += 1;
    return (await inner.generate({ prompt: "sub" })).text;
  });
  return { outer, inner, calls };
}

const waits = { code: "RUN_WAITING", runId: "p" };

async function statuses(store: Store): Promise<Record<string, string>> {
  const runs = await listRuns(store.log);
  return Object.fromEntries(runs.map(({ runId, status }) => [runId, status]));
}

describe("a parent waits with its child", () => {
  test("that sleeps, and continues in another process when it is due", async () => {
    const clock = createSimulatedClock();
    const journal = createMemoryJournal();
    await expect(
      family(host(journal, 1, clock), () => sleep(HOUR)).outer.generate({ prompt: "go", runId: "p" }),
    ).rejects.toMatchObject(waits);
    const store = host(journal, 2, clock);
    expect((await listRuns(store.log)).map(({ waitsFor }) => waitsFor)).toEqual([
      ["sleep"],
      ["child run p.1.0.0"],
    ]);
    const { outer, inner, calls } = family(store, () => sleep(HOUR));
    expect(await outer.recover()).toEqual([]);
    await clock.advance(HOUR);
    // The child's own host leaves it to the call that started it.
    expect(await inner.recover()).toEqual([]);
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
    expect(calls).toEqual({ parent: 1, child: 1 });
    const result = await outer.generate({ runId: "p" });
    expect(result.toolResults[0]?.output).toBe("child is done");
    expect((await listRuns(store.log)).flatMap(({ waitsFor }) => waitsFor)).toEqual([]);
  });

  test.each(["generate", "stream"] as const)("that asks for an approval, in %s", async (mode) => {
    const journal = createMemoryJournal();
    const first = host(journal, 1);
    const { outer } = family(first, () => "paid", { needsApproval: true });
    if (mode === "generate") {
      await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    } else {
      const { outcome } = await outer.stream({ prompt: "go", runId: "p" });
      expect((await outcome).status).toBe("waiting");
    }
    const second = host(journal, 2);
    await expect(approveRun(second.log, "p", undefined, { approved: true })).rejects.toThrow(
      "it waits for its child run p.1.0.0",
    );
    await approveRun(second.log, "p.1.0.0", undefined, { approved: true });
    const { outer: resumed, calls } = family(second, () => "paid", { needsApproval: true });
    expect(await resumed.recover()).toEqual([{ runId: "p", status: "completed" }]);
    expect(calls).toEqual({ parent: 1, child: 1 });
    expect(await statuses(second)).toEqual({ p: "completed", "p.1.0.0": "completed" });
  });

  test("for a message, over three levels, sent by another process", async () => {
    const store = host();
    const { outer: middle } = family(store, async () => (await waitFor("go"))?.value);
    const top = agentOf(store, async () => (await middle.generate({ prompt: "sub" })).text, { id: "top" });
    await expect(top.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    expect(Object.values(await statuses(store))).toEqual(["waiting", "waiting", "waiting"]);
    await sendToRun(store.log, "p.1.0.0.1.0.0", "now", { name: "go" });
    expect(await top.recover()).toEqual([{ runId: "p", status: "completed" }]);
  });

  test("and waking the parent wakes the child", async () => {
    const store = host();
    const { outer } = family(store, () => sleep(HOUR));
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    expect(await wakeRun(store.log, "p")).toMatchObject([{ kind: "sleep" }]);
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
  });

  test("that needs a human, until the effect is resolved", async () => {
    const store = host();
    const work = () => {
      throw new UnknownOutcomeError("the bank did not answer");
    };
    const { outer } = family(store, work, { effect: "once" });
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    expect(await statuses(store)).toEqual({ p: "waiting", "p.1.0.0": "needs-human" });
    await resolveEntry(store.log, "p.1.0.0.1.0", { outcome: "done", output: "paid" });
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
  });

  test("and gets an error when the child was cancelled", async () => {
    const store = host();
    const { outer } = family(store, () => sleep(HOUR));
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    await cancelRun(store.log, "p.1.0.0");
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
    const { content } = (await outer.generate({ runId: "p" })).steps[0]!;
    expect(JSON.stringify(content)).toContain("tool-error");
  });

  test("that is answered at the moment the parent starts to wait", async () => {
    const journal = createMemoryJournal();
    const store = host(journal);
    const { outer } = family(store, () => "paid", { needsApproval: true });
    const write = store.log.journal.write;
    // The child has released its run; the parent has not written yet that it waits.
    Object.assign(store.log.journal, {
      write: async (each: Parameters<typeof write>[0]) => {
        if (each.runId === "p" && each.head?.status === "waiting")
          await approveRun(store.log, "p.1.0.0", undefined, { approved: true });
        return write(each);
      },
    });
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
  });

  test("after its other steps have ended", async () => {
    const store = host();
    const did: string[] = [];
    const inner = agentOf(store, () => sleep(HOUR), { id: "child" });
    const outer = agentOf(store, async () => {
      const [{ text }] = await Promise.all([
        inner.generate({ prompt: "sub" }),
        step("other", async () => {
          await new Promise(setImmediate);
          did.push("other");
        }),
      ]);
      return text;
    });
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    await wakeRun(store.log, "p");
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
    expect(did).toEqual(["other"]);
  });
});

describe("a streamed child", () => {
  const streaming = (store: Store, work: () => unknown, child: AgentOptions = {}) => {
    const inner = agentOf(store, work, { id: "child", ...child });
    const tools = {
      work: tool({
        inputSchema: anything,
        async *execute(): AsyncGenerator<string> {
          const { toUIMessageStream } = await inner.stream({ prompt: "sub" });
          for await (const message of readUIMessageStream({ stream: toUIMessageStream() })) {
            yield message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
          }
        },
      }),
    };
    const plain = new ToolLoopAgent({
      id: "parent",
      model: script([[call("work", {})], "done"]),
      tools,
      stopWhen: isStepCount(9),
    });
    return durable(plain, { store, effects: { work: "nested" }, recover: false, graceMs: 10 });
  };

  test.each<[string, () => unknown, AgentOptions, (store: Store) => Promise<unknown>]>([
    ["sleeps", () => sleep(HOUR), {}, (store: Store) => wakeRun(store.log, "p")],
    [
      "asks",
      () => "paid",
      { needsApproval: true },
      (store: Store) => approveRun(store.log, "p.1.0.0", undefined, { approved: true }),
    ],
  ])("that %s does not end its call early", async (_, work, options, answer) => {
    const store = host();
    const outer = streaming(store, work, options);
    const { outcome } = await outer.stream({ prompt: "go", runId: "p" });
    expect((await outcome).status).toBe("waiting");
    await answer(store);
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
    const result = await outer.generate({ runId: "p" });
    expect(result.steps[0]?.toolResults[0]?.output).toBe("child is done");
  });
});

test("a durable call inside a tool waits like an agent", async () => {
  const store = host();
  const outer = agentOf(store, async () => {
    const tools = { work: tool({ inputSchema: anything, execute: () => sleep(HOUR) }) };
    const settings = { model: script([[call("work", {})], "slept"]), tools, stopWhen: isStepCount(9) };
    return (
      await durableCall(store, { effects: { work: "nested" } }, { ...settings, prompt: "sub" }).generate()
    ).text;
  });
  await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
  await wakeRun(store.log, "p");
  expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
  expect((await outer.generate({ runId: "p" })).toolResults[0]?.output).toBe("slept");
});

test("children that start in another order do not get each other's results: the run stops for a human", async () => {
  const store = host();
  let order = ["a", "b"];
  const inner = agentOf(store, () => sleep(HOUR), { id: "child" });
  const outer = agentOf(store, () => Promise.all(order.map((prompt) => inner.generate({ prompt }))));
  await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
  await wakeRun(store.log, "p");
  order = ["b", "a"];
  expect(await outer.recover()).toMatchObject([
    { runId: "p", status: "needs-human", reason: expect.stringContaining("p.1.0.0 had another input") },
  ]);
});

test("a child whose call gets another caller while it waits is continued: nobody chose its id", async () => {
  const store = host();
  const inner = agentOf(store, () => sleep(HOUR), { id: "child" });
  let more = {};
  const outer = agentOf(store, () => inner.generate({ prompt: "sub", ...more }).then(({ text }) => text));
  await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
  await wakeRun(store.log, "p");
  more = { caller: "ann" };
  expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
  expect((await outer.generate({ runId: "p" })).toolResults[0]?.output).toBe("child is done");
});

test("the usage of child runs, over two levels, is part of the total of the runs above them", async () => {
  const store = host();
  const leaf = agentOf(store, () => "ok", { id: "leaf" });
  const inner = agentOf(store, async () => (await leaf.generate({ prompt: "x" })).text, { id: "child" });
  const outer = agentOf(store, async () => (await inner.generate({ prompt: "sub" })).text);
  await outer.generate({ prompt: "go", runId: "p" });
  const own = { inputTokens: 2 * USAGE.inputTokens.total, outputTokens: 2 * USAGE.outputTokens.total };
  const { summary, totalUsage } = await showRun(store.log, "p");
  expect(summary.usage).toEqual(own);
  expect(totalUsage).toEqual({ inputTokens: 3 * own.inputTokens, outputTokens: 3 * own.outputTokens });
});

test("a child of an open run is continued only by its parent", async () => {
  const store = host();
  const { outer, inner } = family(store, () => sleep(HOUR));
  await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
  await expect(inner.generate({ runId: "p.1.0.0" })).rejects.toMatchObject({
    code: "RUN_BUSY",
    message: expect.stringContaining("is a child of run p"),
  });
});

describe("an executor inside a tool", () => {
  const agent = (execute: () => unknown, effect: "nested" | "once" = "nested") => ({
    id: "inner",
    tools: { work: { inputSchema: anything, effect, execute } },
  });
  const executorOf = (store: Store) =>
    createExecutor({
      store,
      model: script([[call("work", {})], "inner is done"]),
      defaults: { graceMs: 10 },
    });

  test("is a child run: its result is kept, and its parent waits with it", async () => {
    const store = host();
    let worked = 0;
    const inner = agent(async () => {
      worked += 1;
      await step("once", () => undefined);
      await sleep(HOUR);
      return "ok";
    });
    let die = true;
    const outer = agentOf(store, async () => {
      const { output, status, runId } = await executorOf(store).run(inner, "sub");
      if (die) {
        die = false;
        await sleep(HOUR);
      }
      return { output, status, runId };
    });
    await expect(outer.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject(waits);
    expect(await statuses(store)).toEqual({ p: "waiting", "p.1.0.0": "waiting" });
    // Its own host leaves it to the call that started it.
    await wakeRun(store.log, "p.1.0.0");
    expect(await recoverInterrupted(executorOf(store), { agentFor: () => inner })).toMatchObject([
      { runId: "p.1.0.0", how: "skipped", reason: expect.stringContaining("run p continues it") },
      { runId: "p", how: "skipped" },
    ]);
    await expect(outer.generate({ runId: "p" })).rejects.toMatchObject(waits);
    await wakeRun(store.log, "p");
    expect(await outer.recover()).toEqual([{ runId: "p", status: "completed" }]);
    expect((await outer.generate({ runId: "p" })).toolResults[0]?.output).toEqual({
      output: "inner is done",
      status: "completed",
      runId: "p.1.0.0",
    });
    expect(worked).toBe(2);
  });

  test("without a store is refused where it would be repeated, and otherwise part of the call", async () => {
    const store = host();
    const run = async () =>
      (await createExecutor({ model: script(["inner is done"]) }).run({ id: "inner" }, "sub")).output;
    const refused = await agentOf(store, run).generate({ prompt: "go" });
    expect(JSON.stringify(refused.steps[0]!.content)).toContain("an executor without a store");
    const once = await agentOf(store, run, { effect: "once" }).generate({ prompt: "go" });
    expect(once.toolResults[0]?.output).toBe("inner is done");
  });
});
