// Operations on runs by a process other than the one that executes them: on a journal in memory and in
// SQLite.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { durable } from "../../src/run/engine/durable-agent.ts";
import { sleep, waitFor } from "../../src/run/engine/scope.ts";
import type { Journal } from "../../src/run/journal/journal.ts";
import { createMemoryJournal, openSqliteJournal } from "../../src/run/journal/sqlite.ts";
import { RUNS_DATABASE } from "../../src/run/journal/sqlite-migrations.ts";
import { createRunLog, type RunLog } from "../../src/run/log/run-log.ts";
import { approveRun } from "../../src/run/operations/approve.ts";
import { cancelRun } from "../../src/run/operations/cancel.ts";
import { forkRun, rerunRun } from "../../src/run/operations/fork.ts";
import { listRuns } from "../../src/run/operations/list.ts";
import { deleteRun, pruneRuns } from "../../src/run/operations/prune.ts";
import { listQueues, setQueue } from "../../src/run/operations/queue.ts";
import { retryRun } from "../../src/run/operations/retry.ts";
import { sendToRun } from "../../src/run/operations/send.ts";
import { showRun } from "../../src/run/operations/show.ts";
import { wakeRun } from "../../src/run/operations/wake.ts";
import { call, type Line, script } from "./durable/models.ts";
import { processesOf } from "./durable/processes.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
const DAY = 86_400_000;

describe.each(["memory", "sqlite"] as const)("on a %s journal", (kind) => {
  let directory: string;
  let open: (pid: number) => RunLog;
  const opened: Journal[] = [];
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "lazarus-operations-"));
    const memory = createMemoryJournal();
    open = (pid) => {
      const machine = { ...processesOf(pid, "alive"), clock: systemMachine.clock };
      const journal =
        kind === "memory"
          ? { ...memory }
          : openSqliteJournal(machine, join(directory, "runs.db"), RUNS_DATABASE);
      opened.push(journal);
      return createRunLog(journal, { machine });
    };
  });
  afterEach(async () => {
    for (const journal of opened.splice(0)) await journal[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  function worker(
    log: RunLog,
    execute: (input: Record<string, unknown>) => unknown,
    {
      lines = [[call("work", { n: 1 })], [call("work", { n: 2 }, "second")], "done"],
      effect = "once",
      approval = false,
      id = "worker",
    }: { lines?: readonly Line[]; effect?: "once" | "nested"; approval?: boolean; id?: string } = {},
  ) {
    const tools = { work: tool({ inputSchema: anything, execute, needsApproval: approval }) };
    const agent = new ToolLoopAgent({ id, model: script(lines), tools, stopWhen: isStepCount(9) });
    return durable(agent, { store: { log }, effects: { work: effect }, recover: false, graceMs: 10 });
  }

  test("a request is shown with its input, answered by another process, and the run continues", async () => {
    const ran: unknown[] = [];
    const work = (input: unknown) => ran.push(input);
    const agent = worker(open(1), work, { lines: [[call("work", { n: 1 })], "done"], approval: true });
    await agent.generate({ prompt: "go", runId: "r", caller: "ann" });
    const outside = open(2);
    expect(await listRuns(outside)).toMatchObject([
      { runId: "r", status: "waiting", caller: "ann", waitsFor: ["approval of work"], unknownEffects: 0 },
    ]);
    const { waits } = await showRun(outside, "r");
    expect(waits).toMatchObject([{ kind: "approval", state: "open", names: ["work"], input: { n: 1 } }]);
    await expect(approveRun(outside, "r", "r.1.99", { approved: true })).rejects.toMatchObject({
      code: "RUN_APPROVAL_INVALID",
    });
    expect(await agent.recover()).toEqual([]);
    const { verdict, request } = await approveRun(outside, "r", undefined, {
      approved: true,
      reason: "fine",
    });
    expect([verdict, request.id]).toEqual(["answered", waits[0]!.id]);
    await expect(approveRun(outside, "r", undefined, { approved: false })).rejects.toMatchObject({
      message: expect.stringContaining("no open request"),
    });
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
    expect(ran).toEqual([{ n: 1 }]);
    expect((await showRun(outside, "r")).waits).toMatchObject([
      { answer: { approved: true, reason: "fine" } },
    ]);
  });

  test("a message is shown until it is taken", async () => {
    const agent = worker(open(1), async () => (await waitFor("go"))?.value, { effect: "nested" });
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    const outside = open(2);
    expect(await listRuns(outside)).toMatchObject([{ waitsFor: ["message go"] }]);
    expect(await sendToRun(outside, "r", "later", { name: "other", id: "m" })).toEqual({
      id: "m",
      verdict: "accepted",
    });
    expect(await sendToRun(outside, "r", "later", { name: "other", id: "m" })).toMatchObject({
      verdict: "duplicate",
    });
    expect((await showRun(outside, "r")).inbox).toEqual([{ id: "m", name: "other", value: "later" }]);
    await expect(sendToRun(outside, "x", "hello")).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  test("a sleeping run is woken, and so is one that waits for a message; one that has ended is not", async () => {
    const got: unknown[] = [];
    const work = async () => {
      await sleep(DAY);
      got.push((await waitFor("never")) ?? "nothing");
      return "ok";
    };
    const agent = worker(open(1), work, { effect: "nested", lines: [[call("work", {})], "done"] });
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    const outside = open(2);
    expect(await agent.recover()).toEqual([]);
    expect((await wakeRun(outside, "r")).map(({ kind: each }) => each)).toEqual(["sleep"]);
    expect(await agent.recover()).toMatchObject([{ runId: "r", status: "waiting" }]);
    expect((await wakeRun(outside, "r")).map(({ kind: each }) => each)).toEqual(["signal"]);
    expect(await agent.recover()).toEqual([{ runId: "r", status: "completed" }]);
    expect(got).toEqual(["nothing"]);
    await expect(wakeRun(outside, "r")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("a request for approval cannot be woken", async () => {
    const agent = worker(open(1), () => "ran", { approval: true });
    await agent.generate({ prompt: "go", runId: "r" });
    await expect(wakeRun(open(2), "r")).rejects.toMatchObject({ code: "RUN_APPROVAL_INVALID" });
  });

  test("a cancel reaches the owner, its children end too, and the effect in progress is named", async () => {
    const log = open(1);
    const started = Promise.withResolvers<void>();
    const child = worker(
      log,
      () => {
        started.resolve();
        return new Promise(() => {});
      },
      { id: "child" },
    );
    const parent = worker(log, () => child.generate({ prompt: "work" }), { effect: "nested" });
    const result = parent.generate({ prompt: "go", runId: "r" });
    result.catch(() => {});
    await started.promise;
    const outside = open(2);
    const cancelled = await cancelRun(outside, "r", 30_000);
    expect(cancelled).toEqual([
      { runId: "r", status: "cancelled", unknownEffects: ["r.1.0"] },
      { runId: "r.1.0.0", status: "cancelled", unknownEffects: ["r.1.0.0.1.0"] },
    ]);
    await expect(result).rejects.toThrow();
    expect(await cancelRun(outside, "r")).toEqual([]);
    expect(await showRun(outside, "r")).toMatchObject({
      children: [{ runId: "r.1.0.0", unknownEffects: 1 }],
    });
  });

  test("a run without an owner is cancelled immediately: waiting, or parked for a human", async () => {
    const sleeper = worker(open(1), () => sleep(DAY), { effect: "nested" });
    await expect(sleeper.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
      code: "RUN_WAITING",
    });
    expect(await cancelRun(open(2), "r")).toEqual([{ runId: "r", status: "cancelled", unknownEffects: [] }]);
    const unknown = worker(open(1), () => {
      throw Object.assign(new Error("no answer"), { name: "UnknownOutcomeError" });
    });
    await expect(unknown.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject({
      code: "RUN_NEEDS_HUMAN",
    });
    expect(await cancelRun(open(2), "p")).toEqual([
      { runId: "p", status: "cancelled", unknownEffects: ["p.1.0"] },
    ]);
    expect(await sleeper.recover()).toEqual([]);
  });

  test("a fork shares the steps before it, makes later effects under its own ids, and lists those that happened", async () => {
    const ran: string[] = [];
    const work = async ({ n }: Record<string, unknown>) => ran.push(`work ${n}`);
    const agent = worker(open(1), work);
    const original = await agent.generate({ prompt: "go", runId: "r" });
    const outside = open(2);
    const { head, happened } = await forkRun(outside, "r", 1);
    expect(happened.map(({ id, tool: name }) => `${id} ${name}`)).toEqual(["r.2.0 work"]);
    expect(await agent.recover()).toEqual([{ runId: head.id, status: "completed" }]);
    expect(ran).toEqual(["work 1", "work 2", "work 2"]);
    const again = await agent.generate({ runId: head.id });
    expect(again.text).toBe(original.text);
    expect(again.steps.length).toBe(3);
    const entries = await outside.journal.readEntries(head.id);
    expect(entries.filter(({ kind: each }) => each === "effect").map(({ runId }) => runId)).toEqual([
      "r",
      head.id,
    ]);
    await expect(forkRun(outside, "r", 9)).rejects.toMatchObject({
      code: "RUN_STEP_UNKNOWN",
      hint: expect.stringContaining("--at 3"),
    });
    await expect(forkRun(outside, "r", 1.5)).rejects.toMatchObject({ code: "RUN_STEP_UNKNOWN" });
    await expect(forkRun(outside, "r", 1, { runId: "r" })).rejects.toMatchObject({ code: "RUN_ID_TAKEN" });
  });

  test("a fork after an approval keeps the answer, and makes its own later requests", async () => {
    const ran: unknown[] = [];
    const agent = worker(open(1), ({ n }) => ran.push(n), { approval: true });
    const outside = open(2);
    await agent.generate({ prompt: "go", runId: "r" });
    await expect(forkRun(outside, "r", 1)).rejects.toMatchObject({ hint: expect.stringContaining("--at 0") });
    for (const _ of [1, 2]) {
      await approveRun(outside, "r", undefined, { approved: true });
      await agent.recover();
    }
    expect(ran).toEqual([1, 2]);
    const { head } = await forkRun(outside, "r", 1, { runId: "f" });
    expect(await agent.recover()).toEqual([{ runId: "f", status: "waiting" }]);
    expect(ran).toEqual([1, 2]);
    const { waits } = await showRun(outside, head.id);
    expect(waits).toMatchObject([
      { state: "answered", step: 1, answer: { approved: true } },
      { state: "open", step: 2, input: { n: 2 } },
    ]);
    await approveRun(outside, "f", undefined, { approved: false });
    expect(await agent.recover()).toEqual([{ runId: "f", status: "completed" }]);
    expect(ran).toEqual([1, 2]);
  });

  test("a rerun has the input of the run and nothing else; another agent can be given", async () => {
    const ran: unknown[] = [];
    await worker(open(1), ({ n }) => ran.push(n)).generate({ prompt: "go", runId: "r" });
    const { head, happened } = await rerunRun(open(2), "r", { agentId: "other" });
    expect(happened.map(({ id }) => id)).toEqual(["r.1.0", "r.2.0"]);
    expect(head).toMatchObject({ forkOf: "r", forkStep: 0, agentId: "other", definition: null });
    const other = worker(open(1), ({ n }) => ran.push(`other ${n}`), { id: "other" });
    expect(await other.recover()).toEqual([{ runId: head.id, status: "completed" }]);
    expect(ran).toEqual([1, 2, "other 1", "other 2"]);
  });

  test("a prune keeps what forks share; a pruned id is never used again", async () => {
    const log = open(1);
    const agent = worker(log, () => "ok");
    await agent.generate({ prompt: "go", runId: "r" });
    const { head } = await forkRun(log, "r", 1, { runId: "f" });
    expect(await pruneRuns(log, { olderThanMs: 0, statuses: ["failed"] })).toEqual({
      removed: [],
      stubs: [],
    });
    expect(await pruneRuns(log, { olderThanMs: 0 })).toEqual({ removed: ["r"], stubs: ["r"] });
    expect(await agent.recover()).toEqual([{ runId: head.id, status: "completed" }]);
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
      code: "RUN_ID_TAKEN",
    });
    expect(await deleteRun(log, "f")).toBe(true);
    expect(await deleteRun(log, "f")).toBe(false);
    expect(await listRuns(log)).toEqual([]);
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({
      code: "RUN_ID_TAKEN",
    });
  });

  test("a run whose process died repeatedly can be retried", async () => {
    const log = open(1);
    await log.journal.insert(
      {
        ...{
          id: "r",
          agentId: "worker",
          parentRunId: null,
          forkOf: null,
          forkStep: null,
          format: 2,
          createdAtMs: 1,
        },
        ...{
          queue: null,
          caller: null,
          priority: 0,
          thread: null,
          definition: null,
          info: "{}",
          status: "running",
        },
        ...{ epoch: 6, owner: null, leaseUntilMs: 0, deaths: 5, seq: 0, step: 0, phase: 0, messages: 0 },
        ...{ redactions: 0, inputTokens: 0, outputTokens: 0, wakeMs: null, cancelMs: null, updatedAtMs: 1 },
        ...{ output: null, error: null },
      },
      [],
    );
    expect(await worker(log, () => "ok").recover()).toMatchObject([{ status: "skipped" }]);
    expect(await retryRun(log, "r")).toBe(5);
    expect((await log.journal.readHead("r"))!.deaths).toBe(0);
  });

  test("queues have settings, which are checked", async () => {
    const log = open(1);
    await setQueue(log, "mail", { total: 2, perCaller: 1, tokens: { amount: 1000, perMs: 60_000 } });
    expect(await listQueues(open(2))).toEqual([
      {
        queue: "mail",
        settings: { total: 2, perCaller: 1, tokens: { amount: 1000, perMs: 60_000 } },
        ...{ queued: 0, running: 0, waiting: 0, callers: {} },
      },
    ]);
    await expect(setQueue(log, "mail", { total: -1 })).rejects.toMatchObject({ code: "USAGE" });
    await expect(setQueue(log, "mail", { calls: { amount: 0, perMs: 1 } })).rejects.toMatchObject({
      code: "USAGE",
    });
    await expect(setQueue(log, "", {})).rejects.toMatchObject({ code: "USAGE" });
    await setQueue(log, "mail", null);
    expect(await listQueues(log)).toEqual([]);
  });

  test("a run that has not ended is not deleted, unless that is forced", async () => {
    const log = open(1);
    const agent = worker(log, () => sleep(3_600_000), { effect: "nested" });
    await expect(agent.generate({ prompt: "go", runId: "r" })).rejects.toMatchObject({ code: "RUN_WAITING" });
    await expect(deleteRun(log, "r")).rejects.toMatchObject({
      code: "RUN_BUSY",
      message: "run r is waiting; nothing was deleted",
      hint: expect.stringContaining("lazarus runs cancel r"),
    });
    const asleep = worker(log, () => agent.generate({ prompt: "sub" }), { effect: "nested", id: "above" });
    await expect(asleep.generate({ prompt: "go", runId: "p" })).rejects.toMatchObject({
      code: "RUN_WAITING",
    });
    await cancelRun(log, "p.1.0.0");
    await expect(deleteRun(log, "p.1.0.0")).rejects.toThrow("is a child of run p, which has not ended");
    expect(await deleteRun(log, "r", { force: true })).toBe(true);
    expect(await deleteRun(log, "p.1.0.0", { force: true })).toBe(true);
  });
});
