// Queues and schedules of durable agents: several processes on one journal.
import { isStepCount, ToolLoopAgent } from "ai";
import { expect, test, vi } from "vitest";
import { systemMachine } from "../../../src/platform/machine.ts";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import { durableCall } from "../../../src/run/engine/durable-call.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { listQueues, setQueue } from "../../../src/run/operations/queue.ts";
import { createSimulatedClock } from "../../../src/testing/simulated-clock.ts";
import { type Line, script } from "./models.ts";
import { processesOf } from "./processes.ts";

function host(journal = createMemoryJournal(), pid = 1, clock = systemMachine.clock) {
  return { log: createRunLog({ ...journal }, { machine: { ...processesOf(pid, "alive"), clock } }) };
}

function worker(store: ReturnType<typeof host>, line: Line = "done", id = "worker") {
  const agent = new ToolLoopAgent({ id, model: script([line]), stopWhen: isStepCount(3) });
  return durable(agent, { store, recover: false, graceMs: 10 });
}

/** A model that answers when the test tells it to, and counts the calls in progress. */
function gate() {
  const open: (() => void)[] = [];
  const state = { now: 0, most: 0, order: [] as string[] };
  const agent = (store: ReturnType<typeof host>) => {
    const model = script(["done"]);
    const { doGenerate } = model;
    Object.assign(model, {
      doGenerate: async (options: Parameters<typeof doGenerate>[0]) => {
        state.now += 1;
        state.most = Math.max(state.most, state.now);
        const [{ content }] = options.prompt.slice(-1) as unknown as [{ content: [{ text: string }] }];
        state.order.push(content[0].text);
        await new Promise<void>((resolve) => open.push(resolve));
        state.now -= 1;
        return doGenerate(options);
      },
    });
    return durable(new ToolLoopAgent({ id: "worker", model }), { store, recover: false });
  };
  return { state, agent, next: () => open.shift()?.() };
}

test("calls wait for a slot, including those of another process, and callers take turns", async () => {
  const journal = createMemoryJournal();
  const { state, agent, next } = gate();
  const [first, second] = [agent(host(journal, 1)), agent(host(journal, 2))];
  await setQueue(host(journal).log, "q", { total: 2 });
  const call = (by: typeof first, caller: string, prompt: string) =>
    by.generate({ prompt, caller, queue: "q" });
  const results = [call(first, "ann", "a1")];
  await vi.waitFor(() => expect(state.order).toEqual(["a1"]));
  results.push(call(first, "ann", "a2"));
  await vi.waitFor(() => expect(state.order).toEqual(["a1", "a2"]));
  results.push(call(first, "ann", "a3"), call(second, "bob", "b1"));
  await vi.waitFor(async () => {
    expect(await listQueues(host(journal).log)).toMatchObject([
      { queue: "q", queued: 2, running: 2, callers: { ann: { queued: 1, running: 2 }, bob: { queued: 1 } } },
    ]);
  });
  next();
  // Bob has no run yet, so he is next, although Ann was first.
  await vi.waitFor(() => expect(state.order).toEqual(["a1", "a2", "b1"]));
  next();
  await vi.waitFor(() => expect(state.order).toEqual(["a1", "a2", "b1", "a3"]));
  next();
  next();
  expect((await Promise.all(results)).map(({ text }) => text)).toEqual(["done", "done", "done", "done"]);
  expect(state.most).toBe(2);
});

test("a run is enqueued and executed by whichever process recovers; its caller can follow it", async () => {
  const journal = createMemoryJournal();
  const id = await worker(host(journal, 1)).enqueue({ prompt: "go", queue: "q", priority: 1 });
  expect((await journal.readHead(id))!.status).toBe("queued");
  const other = worker(host(journal, 2));
  await expect(other.enqueue({ prompt: "go", queue: "q", runId: id })).rejects.toMatchObject({
    code: "RUN_ID_TAKEN",
  });
  expect(await worker(host(journal, 3), "no", "somebody").recover()).toEqual([]);
  expect(await other.recover()).toEqual([{ runId: id, status: "completed" }]);
  expect((await worker(host(journal, 1)).generate({ runId: id })).text).toBe("done");
});

test("a paused queue starts nothing until its limit is raised", async () => {
  const journal = createMemoryJournal();
  const store = host(journal);
  await setQueue(store.log, "q", { total: 0 });
  const agent = worker(store);
  const result = agent.generate({ prompt: "go", queue: "q", runId: "r" });
  await vi.waitFor(async () => expect((await journal.readHead("r"))?.status).toBe("queued"));
  expect(await agent.recover()).toEqual([]);
  await setQueue(store.log, "q", { total: 1 });
  expect((await result).text).toBe("done");
});

test("model calls wait for the rate of their queue, in calls and in tokens", async () => {
  const journal = createMemoryJournal();
  const clock = createSimulatedClock();
  const store = host(journal, 1, clock);
  const agent = worker(store);
  await setQueue(store.log, "q", { calls: { amount: 1, perMs: 1000 } });
  await setQueue(store.log, "t", { tokens: { amount: 10, perMs: 1000 } });
  for (const queue of ["q", "t"]) {
    await agent.generate({ prompt: "go", queue });
    let ended = false;
    const second = agent.generate({ prompt: "go", queue }).then(() => {
      ended = true;
    });
    // A response costs 15 tokens: more than a second may take.
    await vi.waitFor(async () =>
      expect(await listQueues(store.log)).toContainEqual(expect.objectContaining({ queue, running: 1 })),
    );
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    expect(ended).toBe(false);
    await clock.advance(1000);
    await second;
  }
});

test("a durable call refuses a queue", () => {
  const settings = { model: script(["done"]), prompt: "go" };
  expect(() => durableCall(host(), { queue: "q" } as never, settings)).toThrow(/cannot wait in a queue/);
});

const HOUR = 3_600_000;
const hourly = (afterMs: number) => (Math.floor(afterMs / HOUR) + 1) * HOUR;

test("each tick of a schedule runs once, over two hosts and a restart", async () => {
  const journal = createMemoryJournal();
  const clock = createSimulatedClock();
  const agents = [1, 2].map((pid) => worker(host(journal, pid, clock)));
  const schedules = agents.map((agent) =>
    agent.schedule({ name: "nightly", next: hourly }, { prompt: "clean up" }),
  );
  const tickAll = async () =>
    (await Promise.all(schedules.map((each) => each.tick()))).flatMap(({ started }) => started);
  expect(await tickAll()).toEqual([]);
  await clock.advance(HOUR);
  const [id, ...others] = await tickAll();
  expect(id).toMatch(/^nightly-\d{8}T\d{9}Z$/);
  expect(others).toEqual([]);
  const ran = (await Promise.all(agents.map((agent) => agent.recover()))).flat();
  expect(ran).toEqual([{ runId: id, status: "completed" }]);
  // Two ticks were missed: the last one runs.
  await clock.advance(3 * HOUR);
  const again = await worker(host(journal, 3, clock))
    .schedule({ name: "nightly", next: hourly }, { prompt: "x" })
    .tick();
  expect(again).toMatchObject({ missed: 2, skipped: [] });
  expect(again.started).toHaveLength(1);
  expect(await tickAll()).toEqual([]);
  for (const each of schedules) each[Symbol.dispose]();
});

test.each([
  ["skip", 1, ["queued"]],
  ["queue", 2, ["queued", "queued"]],
  ["cancel", 2, ["cancelled", "queued"]],
] as const)("overlap %s", async (overlap, started, statuses) => {
  const journal = createMemoryJournal();
  const clock = createSimulatedClock();
  const agent = worker(host(journal, 1, clock));
  const schedule = agent.schedule({ name: "n", next: hourly, overlap }, { prompt: "x" });
  await schedule.tick();
  const ids: string[] = [];
  for (const _ of [1, 2]) {
    await clock.advance(HOUR);
    ids.push(...(await schedule.tick()).started);
  }
  schedule[Symbol.dispose]();
  expect(ids).toHaveLength(started);
  expect((await journal.list({})).map(({ status }) => status).reverse()).toEqual(statuses);
});
