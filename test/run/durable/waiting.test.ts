// Steps inside tools, sleep, messages, child runs, cancel, follow, abort: across several processes on one journal.
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { expect, test } from "vitest";
import { systemMachine } from "../../../src/platform/machine.ts";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { durableCall } from "../../../src/run/engine/durable-call.ts";
import { UnknownOutcomeError } from "../../../src/run/engine/ledger.ts";
import { currentEffect, RunSuspended, sleep, step, waitFor } from "../../../src/run/engine/scope.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { createMemoryRunStore } from "../../../src/run/store/open.ts";
import { createRunStore } from "../../../src/run/store/store.ts";
import { createSimulatedClock } from "../../../src/testing/simulated-clock.ts";
import { call, type Line, script } from "./models.ts";
import { processesOf } from "./processes.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const HOUR = 3_600_000;

function host(journal = createMemoryJournal(), pid = 1, clock = systemMachine.clock) {
  return { log: createRunLog({ ...journal }, { machine: { ...processesOf(pid), clock } }) };
}

function worker(
  execute: (input: Record<string, unknown>) => unknown,
  store: Pick<ReturnType<typeof host>, "log">,
  effect: "nested" | "once" | "idempotent" = "nested",
  lines: readonly Line[] = [[call("work", {})], "done"],
) {
  const tools = { work: tool({ inputSchema: anything, execute }) };
  const agent = new ToolLoopAgent({ id: "worker", model: script(lines), tools, stopWhen: isStepCount(9) });
  return durable(agent, { store, effects: { work: effect }, recover: false, graceMs: 10 });
}

test("a sleeping run releases its lease, and continues in another process without repeating its steps", async () => {
  const clock = createSimulatedClock();
  const journal = createMemoryJournal();
  const did: string[] = [];
  const work = async () => {
    await step("first", () => did.push("first"));
    await sleep(HOUR);
    await step("second", () => did.push("second"));
    return currentEffect()!.id;
  };
  const first = worker(work, host(journal, 1, clock));
  await expect(first.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
    code: "RUN_WAITING",
    runId: "r",
  });
  const head = (await journal.readHead("r"))!;
  expect([head.status, head.owner, head.wakeMs]).toEqual(["waiting", null, Math.floor(clock.nowMs()) + HOUR]);
  const second = worker(work, host(journal, 2, clock));
  expect(await second.recover()).toEqual([]);
  await clock.advance(HOUR);
  expect(await second.recover()).toEqual([{ runId: "r", status: "completed" }]);
  expect(did).toEqual(["first", "second"]);
});

test("a sleep that was due days ago ends when a host is back, once", async () => {
  const clock = createSimulatedClock();
  const journal = createMemoryJournal();
  let woken = 0;
  const work = async () => {
    await sleep(HOUR);
    await step("after", () => {
      woken += 1;
    });
  };
  await expect(
    worker(work, host(journal, 1, clock)).generate({ prompt: "go", runId: "r" }),
  ).rejects.toMatchObject({ code: "RUN_WAITING" });
  await clock.advance(5 * 24 * HOUR);
  const later = worker(work, host(journal, 2, clock));
  expect(await later.recover()).toEqual([{ runId: "r", status: "completed" }]);
  expect(await later.recover()).toEqual([]);
  expect(woken).toBe(1);
});

test("a message wakes a waiting run, even one that came before anyone waited", async () => {
  const journal = createMemoryJournal();
  const got: unknown[] = [];
  const work = async () => {
    got.push((await waitFor(["go", "stop"]))?.value);
    got.push((await waitFor("later", HOUR))?.value);
    return "ok";
  };
  const agent = worker(work, host(journal));
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  expect(await agent.send("r", "early", { name: "later", id: "m1" })).toBe("accepted");
  expect(await agent.send("r", { n: 1 }, { name: "go", id: "m2" })).toBe("accepted");
  expect(await agent.send("r", { n: 2 }, { name: "go", id: "m2" })).toBe("duplicate");
  expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
  expect(got.slice(-2)).toEqual([{ n: 1 }, "early"]);
  await expect(agent.send("r", "too late")).rejects.toMatchObject({ code: "RUN_ENDED" });
});

test("waitFor returns undefined when it times out", async () => {
  const clock = createSimulatedClock();
  const agent = worker(async () => (await waitFor("never", HOUR)) ?? "nothing", host(undefined, 1, clock));
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  await clock.advance(HOUR);
  await agent.recover();
  const result = await agent.generate({ runId: "r" });
  expect(result.toolResults[0]?.output).toBe("nothing");
});

test("a message for the model is delivered before its next step", async () => {
  const store = host();
  const agent = worker(
    async () => {
      await agent.send("r", "use euros");
      return "ok";
    },
    store,
    "once",
  );
  const result = await agent.generate({ prompt: "go", runId: "r" });
  expect(JSON.stringify(result.steps.at(-1)?.request ?? "")).toBeDefined();
  expect(await store.log.journal.readInbox("r")).toEqual([]);
});

test("a child run has the id of its call, and a repeated call finds it", async () => {
  const journal = createMemoryJournal();
  let asked = 0;
  const childOf = (store: ReturnType<typeof host>) =>
    durable(
      new ToolLoopAgent({
        id: "child",
        model: script([
          () => {
            asked += 1;
            return "child's answer";
          },
        ]),
      }),
      { store, recover: false },
    );
  let die = true;
  const parentOf = (store: ReturnType<typeof host>) =>
    worker(async () => {
      const { text, runId } = await childOf(store).generate({ prompt: "sub" });
      if (die) await new Promise(() => {});
      return { text, runId };
    }, store);
  // This process counts as dead: it finds out later that it has lost its run.
  parentOf(host(journal, 1))
    .generate({ prompt: "go", runId: "p" })
    .catch(() => {});
  await until(async () => (await journal.readHead("p.1.0.0"))?.status === "completed");
  die = false;
  expect(await parentOf(host(journal, 2)).recover()).toEqual([{ runId: "p", status: "completed" }]);
  expect(asked).toBe(1);
  expect((await journal.readHead("p.1.0.0"))!.parentRunId).toBe("p");
});

test("a tool that does not know whether its effect happened parks the run with its message", async () => {
  const agent = worker(
    () => {
      throw new UnknownOutcomeError("the bank did not answer");
    },
    host(),
    "once",
  );
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toThrow("the bank did not answer");
  await expect(agent.generate({ runId: "r" })).rejects.toThrow("the bank did not answer");
});

test("a human's decision lets a parked run continue", async () => {
  const store = createMemoryRunStore();
  let calls = 0;
  const agent = worker(
    () => {
      calls += 1;
      throw new UnknownOutcomeError("no answer");
    },
    store,
    "once",
  );
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toThrow("no answer");
  expect(await store.resolve("r.1.0", { outcome: "done", output: "paid" })).toMatchObject({ state: "done" });
  const result = await agent.generate({ runId: "r" });
  expect([result.text, result.toolResults[0]?.output, calls]).toEqual(["done", "paid", 1]);
  await expect(store.resolve("r.1.0", { outcome: "retry" })).rejects.toMatchObject({
    code: "EFFECT_SETTLED",
  });
});

test("cancel ends a running run; the effect in progress is unknown and named", async () => {
  const journal = createMemoryJournal();
  const started = Promise.withResolvers<void>();
  const agent = worker(
    () => {
      started.resolve();
      return new Promise(() => {});
    },
    host(journal),
    "once",
  );
  const run = agent.generate({ prompt: "go", runId: "r" }).catch((error: Error) => error);
  await started.promise;
  expect(await agent.cancel("r")).toBe(true);
  const error = await run;
  expect(error).toBeInstanceOf(Error);
  const [, effect] = await journal.readEntries("r");
  expect([effect!.kind, effect!.state, (await journal.readHead("r"))!.status]).toEqual([
    "effect",
    "unknown",
    "cancelled",
  ]);
});

test("a waiting run can be cancelled by any process", async () => {
  const journal = createMemoryJournal();
  const agent = worker(() => sleep(HOUR), host(journal));
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  expect(await worker(() => "", host(journal, 2)).cancel("r")).toBe(true);
  expect((await journal.readHead("r"))!.status).toBe("cancelled");
  expect(await agent.cancel("r")).toBe(false);
});

test("a caller's abort is not a cancel: the run can be resumed, and a detached one keeps running", async () => {
  const journal = createMemoryJournal();
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  const work = async () => {
    started.resolve();
    await gate.promise;
    return "ok";
  };
  const agent = worker(work, host(journal), "idempotent");
  const abort = new AbortController();
  const first = agent.generate({ prompt: "go", runId: "r", abortSignal: abort.signal, detach: true });
  await started.promise;
  abort.abort();
  await expect(first).rejects.toThrow();
  gate.resolve();
  await until(async () => (await journal.readHead("r"))?.status === "completed");
  const second = new AbortController();
  second.abort();
  await expect(agent.generate({ prompt: "go", runId: "s", abortSignal: second.signal })).rejects.toThrow();
  const head = (await journal.readHead("s"))!;
  expect([head.status, head.owner]).toEqual(["running", null]);
  expect((await agent.generate({ runId: "s" })).text).toBe("done");
});

test("a follower in another process streams a run while it happens, without acting", async () => {
  const journal = createMemoryJournal();
  const gate = Promise.withResolvers<void>();
  let calls = 0;
  const work = async () => {
    calls += 1;
    await gate.promise;
    return "ok";
  };
  const owner = worker(work, host(journal, 1));
  const own = await owner.stream({ prompt: "go", runId: "r" });
  const follower = await worker(work, host(journal, 2)).follow("r");
  const followed = Array.fromAsync(follower.fullStream);
  gate.resolve();
  const kinds = (parts: readonly { type: string }[]) => parts.map(({ type }) => type);
  expect(kinds(await followed).filter((type) => !/delta/.test(type))).toEqual(
    kinds(await Array.fromAsync(own.fullStream)).filter((type) => !/delta/.test(type)),
  );
  expect([calls, await follower.text]).toEqual([1, "done"]);
});

test("a changed agent continues by default, is refused, or is left to the old version", async () => {
  const journal = createMemoryJournal();
  const make = (instructions: string, onChange: "continue" | "pin" | "refuse", pid: number) => {
    const tools = { work: tool({ inputSchema: anything, execute: () => sleep(1) }) };
    const agent = new ToolLoopAgent({
      id: "w",
      instructions,
      model: script([[call("work", {})], "done"]),
      tools,
    });
    return durable(agent, {
      store: host(journal, pid),
      recover: false,
      onChange,
      effects: { work: "idempotent" },
    });
  };
  const abort = new AbortController();
  abort.abort();
  await make("old", "continue", 1)
    .generate({ prompt: "go", runId: "r", abortSignal: abort.signal })
    .catch(() => {});
  await expect(make("new", "refuse", 2).generate({ runId: "r" })).rejects.toMatchObject({
    code: "RUN_CHANGED",
  });
  expect(await make("new", "pin", 2).recover()).toMatchObject([{ runId: "r", status: "skipped" }]);
  expect(await make("new", "continue", 2).recover()).toEqual([{ runId: "r", status: "completed" }]);
});

test("a reused id with another input is refused, and so is input that cannot be stored", async () => {
  const agent = worker(() => "ok", host());
  await agent.generate({ prompt: "go", runId: "r" });
  await expect(agent.generate({ prompt: "other", runId: "r" })).rejects.toMatchObject({
    code: "RUN_ID_TAKEN",
  });
  const messages = [{ role: "user", content: [{ type: "file", mediaType: "x/y", data: () => {} }] }] as never;
  await expect(agent.generate({ messages })).rejects.toMatchObject({ code: "RUN_NOT_STORABLE" });
});

test("durableCall makes generateText and streamText durable", async () => {
  const store = host();
  let paid = 0;
  const settings = {
    model: script([[call("work", {})], "done"]),
    tools: { work: tool({ inputSchema: anything, execute: () => ++paid }) },
    stopWhen: isStepCount(5),
    prompt: "go",
  };
  expect((await durableCall(store, { runId: "r" }, settings).generate()).text).toBe("done");
  expect((await durableCall(store, { runId: "r" }, settings).generate()).text).toBe("done");
  const streamed = await durableCall(store, { runId: "s", effects: { work: "read" } }, settings).stream();
  expect(await streamed.text).toBe("done");
  expect(paid).toBe(2);
  // @ts-expect-error there is no such tool
  void (() => durableCall(store, { runId: "t", effects: { wrok: "read" } }, settings));
});

test("a step that was started after a wait is not repeated when its process dies", async () => {
  const journal = createMemoryJournal();
  let paid = 0;
  const work = async () => {
    await waitFor("go");
    await step("pay", () => {
      paid += 1;
      return new Promise(() => {});
    });
  };
  const first = worker(work, host(journal, 1));
  await expect(first.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  await first.send("r", 1, { name: "go" });
  // These processes count as dead in the middle of the step.
  worker(work, host(journal, 2))
    .recover()
    .catch(() => {});
  await until(async () => paid === 1);
  await expect(worker(work, host(journal, 3)).generate({ runId: "r" })).rejects.toMatchObject({
    code: "RUN_NEEDS_HUMAN",
    message: expect.stringContaining("its step pay was started"),
  });
  // A human's retry counts for one attempt.
  await createRunStore(journal).resolve("r.1.0", { outcome: "retry" });
  worker(work, host(journal, 4))
    .recover()
    .catch(() => {});
  await until(async () => paid === 2);
  await expect(worker(work, host(journal, 5)).generate({ runId: "r" })).rejects.toMatchObject({
    code: "RUN_NEEDS_HUMAN",
  });
  expect(paid).toBe(2);
});

test("a call waits only when its other steps have ended, and every message that it waits for wakes it", async () => {
  const journal = createMemoryJournal();
  const slow = Promise.withResolvers<string>();
  let paid = 0;
  const work = () =>
    Promise.all([
      step("pay", () => {
        paid += 1;
        return slow.promise;
      }),
      waitFor("go"),
      step("around", async () => (await waitFor("later"))?.value),
    ]);
  const agent = worker(work, host(journal));
  const run = agent.generate({ prompt: "go", runId: "r" }).catch((error: Error) => error);
  await until(async () => paid === 1);
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  expect((await journal.readHead("r"))!.status).toBe("running");
  slow.resolve("receipt");
  expect(await run).toMatchObject({ code: "RUN_WAITING" });
  expect((await journal.readWaits("r")).map(({ names }) => names[0]).sort()).toEqual(["go", "later"]);
  await agent.send("r", 2, { name: "later" });
  expect(await agent.recover()).toMatchObject([{ status: "waiting" }]);
  await agent.send("r", 1, { name: "go" });
  expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
  const { toolResults } = await agent.generate({ runId: "r" });
  expect([paid, toolResults[0]?.output]).toEqual([1, ["receipt", expect.objectContaining({ value: 1 }), 2]]);
});

test("a step that an earlier process left unfinished stays unknown after a wait", async () => {
  const journal = createMemoryJournal();
  let paid = 0;
  const dies = async () => {
    await Promise.all([
      step("pay", () => {
        paid += 1;
        return new Promise(() => {});
      }),
      waitFor("go"),
    ]);
  };
  worker(dies, host(journal, 1))
    .generate({ prompt: "go", runId: "r" })
    .catch(() => {});
  await until(async () => paid === 1);
  await expect(worker(dies, host(journal, 2)).generate({ runId: "r" })).rejects.toMatchObject({
    code: "RUN_NEEDS_HUMAN",
  });
  const head = (await journal.readHead("r"))!;
  const effect = (await journal.readEntries("r")).find(({ kind }) => kind === "effect");
  expect([head.status, effect?.state, paid]).toEqual(["needs-human", "unknown", 1]);
});

test("a call that returns is not suspended by a wait that it left behind", async () => {
  const agent = worker(() => Promise.race([step("quick", () => "ok"), waitFor("never")]), host());
  await agent.generate({ prompt: "go", runId: "r" }).catch(() => {});
  const result = await agent.generate({ runId: "r" });
  expect([result.text, result.toolResults[0]?.output]).toEqual(["done", "ok"]);
});

test("parts of a call that do not match its record park the run", async () => {
  const journal = createMemoryJournal();
  const names = ["first", "other"];
  const work = async () => {
    await step(names.shift()!, () => "ok");
    await waitFor("go");
  };
  const agent = worker(work, host(journal));
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  await agent.send("r", 1, { name: "go" });
  await expect(agent.generate({ runId: "r" })).rejects.toMatchObject({
    code: "RUN_NEEDS_HUMAN",
    message: expect.stringContaining('was "first" and is now "other"'),
  });
});

test("a generator that does not know whether its effect happened parks the run", async () => {
  let calls = 0;
  const agent = worker(
    async function* () {
      calls += 1;
      yield "sending";
      throw new UnknownOutcomeError("the bank did not answer");
    },
    host(),
    "once",
  );
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toThrow("the bank did not answer");
  await expect(agent.generate({ runId: "r" })).rejects.toMatchObject({ code: "RUN_NEEDS_HUMAN" });
  expect(calls).toBe(1);
});

test.each<[string, () => Promise<unknown>]>([
  ["waitFor a text", () => waitFor("x", "5m" as never)],
  ["waitFor NaN", () => waitFor("x", Number.NaN)],
  ["sleep past the last date", () => sleep(1e20)],
  ["sleep forever", () => sleep(Number.POSITIVE_INFINITY)],
  ["sleep a text", () => sleep("tomorrow" as never)],
  ["sleep until no date", () => sleep(new Date("x"))],
])("an invalid time fails the call: %s", async (_, work) => {
  const agent = worker(work, host());
  const { text, steps } = await agent.generate({ prompt: "go", runId: "r" });
  const [failure] = steps[0]!.content.filter(({ type }) => type === "tool-error");
  expect([text, failure]).toMatchObject(["done", { error: { code: "USAGE" } }]);
});

test("waitFor accepts Infinity as its timeout", async () => {
  const journal = createMemoryJournal();
  const agent = worker(() => waitFor("x", Number.POSITIVE_INFINITY), host(journal));
  await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ wakeMs: null });
  expect(new RunSuspended("r", 1e20).code).toBe("RUN_WAITING");
});

test.each([[1], [null], [undefined], [new Map()], [{ role: "system", content: "x" }], [{ role: "user" }]])(
  "an invalid message for the model is refused: %j",
  async (message) => {
    const agent = worker(() => waitFor("x"), host());
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    await expect(agent.send("r", message)).rejects.toMatchObject({ code: "USAGE" });
    const part = { type: "text", text: "use euros" };
    expect(await agent.send("r", { role: "user", content: [part] })).toBe("accepted");
    await expect(agent.send("r", { role: "user", content: [1] })).rejects.toMatchObject({ code: "USAGE" });
    await agent.send("r", message ?? 0, { name: "x" });
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
  },
);

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate);
}
