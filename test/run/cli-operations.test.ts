// `lazarus runs …` on the runs of a durable agent in a cell: what it waits for, and everything that can be done to it.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { afterEach, beforeEach, expect, test } from "vitest";
import { durable, openCellRunStore, sleep, UnknownOutcomeError, waitFor } from "../../src/run/index.ts";
import { call, type Line, script } from "./durable/models.ts";
import { runCli } from "./run-cli.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
let home: string;
let store: ReturnType<typeof openCellRunStore>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-runs-operations-"));
  mkdirSync(join(home, "missions", "m1", "state"), { recursive: true });
  store = openCellRunStore(join(home, "missions", "m1"));
});
afterEach(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const lazarus = (...words: string[]) => runCli(home, ["runs", ...words]);

function worker(
  execute: (input: Record<string, unknown>) => unknown,
  {
    lines = [[call("pay", { euros: 7 })], "paid"],
    approval = false,
    effect = "nested",
  }: { lines?: readonly Line[]; approval?: boolean; effect?: "nested" | "once" } = {},
) {
  const tools = { pay: tool({ inputSchema: anything, execute, needsApproval: approval }) };
  const agent = new ToolLoopAgent({ id: "payer", model: script(lines), tools, stopWhen: isStepCount(9) });
  return durable(agent, { store, effects: { pay: effect }, recover: false, graceMs: 10 });
}

test("an approval is listed, shown, answered once, and the run continues", async () => {
  const paid: unknown[] = [];
  const agent = worker((input) => paid.push(input), { approval: true });
  await agent.generate({ prompt: "pay the bill", runId: "r1", caller: "ann" });
  expect((await lazarus("--open")).out).toMatch(/r1\s+m1\s+payer\s+waiting/);
  const shown = await lazarus("show", "r1");
  expect(shown.out).toContain('open  approval of pay {"euros":7}');
  expect(shown.out).toContain("caller ann");
  expect(shown.err).toContain("lazarus runs approve r1 --request r1.1.");
  expect((await lazarus("show", "r1", "--json")).json()).toMatchObject({
    schema: "lazarus.run/1",
    head: { status: "waiting" },
    waits: [{ kind: "approval", names: ["pay"], input: { euros: 7 } }],
  });
  expect(await lazarus("approve", "r1", "--request", "nope")).toMatchObject({ exit: 7 });
  expect(await lazarus("approve", "nope")).toMatchObject({ exit: 6 });
  expect(await lazarus("wake", "r1")).toMatchObject({ exit: 7, err: expect.stringContaining("approve r1") });
  const answered = await lazarus("approve", "r1", "--json");
  expect(answered.json()).toMatchObject({ schema: "lazarus.run-approve/1", tool: "pay", approved: true });
  expect(await lazarus("approve", "r1", "--deny")).toMatchObject({ exit: 7 });
  await agent.recover();
  expect(paid).toEqual([{ euros: 7 }]);
  const done = await lazarus("show", "r1");
  expect(done.out).toContain("output: paid");
  expect(done.out).toContain("r1.1.0  done  pay");
});

test("a denied approval runs nothing and tells the model why", async () => {
  const paid: unknown[] = [];
  const agent = worker((input) => paid.push(input), { approval: true });
  await agent.generate({ prompt: "pay the bill", runId: "r1" });
  expect(await lazarus("approve", "r1", "--deny", "--reason", "too much")).toMatchObject({
    exit: 0,
    out: expect.stringContaining("denied"),
  });
  await agent.recover();
  expect(paid).toEqual([]);
  expect(JSON.stringify((await agent.generate({ runId: "r1" })).content)).toContain("paid");
});

test("a message wakes a run; a sleep is ended", async () => {
  const got: unknown[] = [];
  const agent = worker(async () => {
    got.push((await waitFor("paid"))?.value);
    await sleep(86_400_000);
    return "ok";
  });
  await expect(agent.generate({ prompt: "go", runId: "r1" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  expect(await lazarus("send", "r1")).toMatchObject({ exit: 2 });
  expect(await lazarus("send", "r1", "x", "--value", "{}")).toMatchObject({ exit: 2 });
  expect(await lazarus("send", "r1", "--value", "{oops")).toMatchObject({ exit: 2 });
  const sent = await lazarus("send", "r1", "--name", "paid", "--value", '{"amount":7}', "--id", "m1");
  expect(sent).toMatchObject({ exit: 0, out: "m1\n" });
  expect(
    (await lazarus("send", "r1", "--name", "paid", "again", "--id", "m1", "--json")).json(),
  ).toMatchObject({
    verdict: "duplicate",
  });
  expect((await lazarus("show", "r1")).out).toContain('m1  paid  {"amount":7}');
  expect(await agent.recover()).toMatchObject([{ status: "waiting" }]);
  expect(got.at(-1)).toEqual({ amount: 7 });
  expect(await lazarus("wake", "r1")).toMatchObject({
    exit: 0,
    err: expect.stringContaining("ended: sleep"),
  });
  expect(await agent.recover()).toMatchObject([{ status: "completed" }]);
  expect(await lazarus("wake", "r1")).toMatchObject({ exit: 7 });
  expect(await lazarus("send", "r1", "late")).toMatchObject({ exit: 7 });
});

test("cancel, fork, rerun and prune", async () => {
  const agent = worker(() => sleep(86_400_000));
  await expect(agent.generate({ prompt: "go", runId: "r1" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  expect(await lazarus("cancel", "r1")).toMatchObject({ exit: 0, out: "r1 cancelled\n" });
  expect(await lazarus("cancel", "r1")).toMatchObject({ exit: 7 });
  const payer = worker(() => "ok");
  await payer.generate({ prompt: "go", runId: "r2" });
  const fork = await lazarus("fork", "r2", "--at", "0", "--id", "f1", "--json");
  expect(fork.json()).toMatchObject({ run_id: "f1", fork_of: "r2", step: 0, happened: [{ id: "r2.1.0" }] });
  const rerun = await lazarus("rerun", "r2", "--with", "other");
  expect(rerun.exit).toBe(0);
  expect(rerun.err).toContain("r2 already ran r2.1.0 (pay, done)");
  expect(await payer.recover()).toMatchObject([{ runId: "f1", status: "completed" }]);
  expect((await lazarus("prune", "--days", "0", "--status", "cancelled")).out).toBe("1 run pruned\n");
  expect(await lazarus("show", "r1")).toMatchObject({ exit: 6 });
  expect((await lazarus("prune", "--days", "0")).out).toBe("2 runs pruned\n");
  expect((await lazarus("show", "r2")).exit).toBe(6);
});

test("limits of a queue are shown, set and removed", async () => {
  expect(await lazarus("queue")).toMatchObject({ exit: 0, out: "no queues\n" });
  expect(await lazarus("queue", "--total", "3")).toMatchObject({ exit: 2 });
  const limits = ["--total", "3", "--per-caller", "1", "--calls", "60/min", "--tokens", "1000/h"];
  const set = await lazarus("queue", "mail", ...limits);
  expect(set.out).toContain("3 total, 1 per caller, 60 calls/min, 1000 tokens/h");
  expect((await lazarus("queue", "mail", "--per-caller", "-1", "--total=0")).out).toContain(
    "0 total, 60 calls/min",
  );
  expect((await lazarus("queue", "--json")).json().queues).toMatchObject([
    { queue: "mail", settings: { total: 0, calls: { amount: 60, perMs: 60_000 } } },
  ]);
  expect(await lazarus("queue", "mail", "--calls", "sixty")).toMatchObject({ exit: 2 });
  expect(await lazarus("queue", "mail", "--total", "x")).toMatchObject({ exit: 2 });
  expect((await lazarus("queue", "mail", "--clear")).out).toBe("no queues\n");
});

test("after a decision, the error that stopped the run is no longer shown", async () => {
  let known = false;
  const work = () => {
    if (known) return "ok";
    throw new UnknownOutcomeError("the bank did not answer");
  };
  const agent = worker(work, { effect: "once" });
  await expect(agent.generate({ prompt: "pay", runId: "r1" })).rejects.toThrow("the bank did not answer");
  expect((await lazarus("show", "r1")).out).toContain("error: r1.1.0 (pay) needs a decision");
  known = true;
  await lazarus("resolve", "r1.1.0", "--done");
  expect((await lazarus("show", "r1")).out).not.toContain("needs a decision");
  await agent.recover();
  const done = await lazarus("show", "r1");
  expect(done.out).toContain("completed");
  expect(done.out).not.toContain("needs a decision");
});

test("values that JSON lacks are shown, as text and as JSON", async () => {
  const agent = worker(() => ({ balances: new Map([["bob", 7n]]), seen: new Set(["a"]) }));
  await agent.generate({ prompt: "pay", runId: "r1" });
  expect((await lazarus("show", "r1")).out).toContain('pay returns {"balances":{"bob":"7"},"seen":["a"]}');
  const { transcript } = (await lazarus("show", "r1", "--json")).json() as { transcript: unknown };
  expect(JSON.stringify(transcript)).toContain('{"balances":{"bob":"7"},"seen":["a"]}');
});

test("the id of a fork is validated, and hints name the store", async () => {
  await worker(() => "ok").generate({ prompt: "pay", runId: "r1" });
  const path = join(home, "missions", "m1", "state", "runs.db");
  for (const id of ["", "../x", "a.b", "-x"]) {
    expect(await lazarus("fork", "r1", "--at", "0", `--id=${id}`)).toMatchObject({
      exit: 2,
      err: expect.stringContaining("is not a run id"),
    });
  }
  expect((await lazarus("retry", "r1", "--store", path)).err).toContain(
    `lazarus runs show r1 --store ${path}`,
  );
  expect((await lazarus("show", "nope", "--store", path)).err).toContain(`lazarus runs --store ${path}`);
  expect((await lazarus("wake", "r1", "--mission", "m1")).err).toContain("lazarus runs show r1 --mission m1");
});
