// The routes about durable runs, with a real store in a cell: responses match the schemas of the OpenAPI document.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as shapes from "../../src/http/run-schemas.ts";
import { durable, openCellRunStore, waitFor } from "../../src/run/index.ts";
import { headRow } from "../../src/testing/journal-rows.ts";
import { call, type Line, script } from "../run/durable/models.ts";
import { startTestServer, type TestServer } from "./test-server.ts";

const anything = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
let server: TestServer;
let store: ReturnType<typeof openCellRunStore>;
beforeAll(async () => {
  server = await startTestServer({ missions: ["m1", "m2"] });
  const cell = join(server.config.missions_root, "m1");
  mkdirSync(join(cell, "state"), { recursive: true });
  store = openCellRunStore(cell);
});
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const get = async (path: string) => (await server.ask(`/v1/missions/m1${path}`)).json();
const post = async (path: string, body: unknown = {}) => {
  const response = await server.ask(`/v1/missions/m1${path}`, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
};

function worker(
  execute: (input: Record<string, unknown>) => unknown,
  approval = false,
  lines: readonly Line[] = [[call("pay", { euros: 7 })], "paid"],
) {
  const tools = { pay: tool({ inputSchema: anything, execute, needsApproval: approval }) };
  const agent = new ToolLoopAgent({ id: "payer", model: script(lines), tools, stopWhen: isStepCount(9) });
  return durable(agent, { store, effects: { pay: "nested" }, recover: false, graceMs: 10 });
}

it("a request for approval is listed, shown and answered", async () => {
  const paid: unknown[] = [];
  const agent = worker((input) => paid.push(input), true);
  await agent.generate({ prompt: "pay the bill", runId: "r1", caller: "ann" });
  const { runs } = shapes.runList.parse(await get("/runs?status=waiting"));
  expect(runs).toMatchObject([{ runId: "r1", caller: "ann", waitsFor: ["approval of pay"] }]);
  expect((await server.ask("/v1/missions/m1/runs?limit=0")).status).toBe(400);
  const shown = shapes.runView.parse(await get("/runs/r1"));
  expect(shown.waits).toMatchObject([{ kind: "approval", input: { euros: 7 } }]);
  const request = shown.waits[0]!.id;
  expect(await post("/runs/r1/approve")).toMatchObject({ status: 400, answer: { code: "BODY_INVALID" } });
  expect(await post("/runs/r1/approve", { request: "r1.1.77", approved: true })).toMatchObject({
    status: 409,
    answer: { code: "RUN_APPROVAL_INVALID" },
  });
  expect(await post("/runs/r1/wake")).toMatchObject({ status: 409 });
  expect(await post("/runs/r1/approve", { request, approved: true })).toMatchObject({
    status: 200,
    answer: { mission_id: "m1", run_id: "r1", verdict: "answered" },
  });
  await agent.recover();
  expect(paid).toEqual([{ euros: 7 }]);
  expect(shapes.runView.parse(await get("/runs/r1"))).toMatchObject({
    summary: { status: "completed" },
    effects: [{ id: "r1.1.0", state: "done" }],
    output: "paid",
  });
});

it("a message is sent once, a wait is ended, and a run is cancelled", async () => {
  const got: unknown[] = [];
  const agent = worker(async () => {
    got.push((await waitFor("go"))?.value);
    got.push((await waitFor("more")) ?? "nothing");
    await waitFor("never");
  });
  await expect(agent.generate({ prompt: "go", runId: "r2" })).rejects.toMatchObject({ code: "RUN_WAITING" });
  expect(await post("/runs/r2/send", {})).toMatchObject({ status: 400 });
  const message = { name: "go", message: { n: 1 }, id: "m1" };
  expect(await post("/runs/r2/send", message)).toMatchObject({ answer: { verdict: "accepted" } });
  expect(await post("/runs/r2/send", message)).toMatchObject({ answer: { verdict: "duplicate" } });
  await agent.recover();
  expect(await post("/runs/r2/wake")).toMatchObject({ status: 200, answer: { waits: [{ kind: "signal" }] } });
  await agent.recover();
  expect(got.slice(-2)).toEqual([{ n: 1 }, "nothing"]);
  expect(await post("/runs/r2/cancel")).toMatchObject({
    answer: { runs: [{ run_id: "r2", status: "cancelled", unknown_effects: [] }] },
  });
  expect(await post("/runs/r2/cancel")).toMatchObject({ answer: { runs: [] } });
  expect(await post("/runs/r2/send", message)).toMatchObject({ answer: { verdict: "duplicate" } });
  expect(await post("/runs/r2/send", { message: "late" })).toMatchObject({ status: 409 });
});

it("an unknown effect is resolved, only under its own run", async () => {
  const agent = worker(() => {
    throw Object.assign(new Error("no answer"), { name: "UnknownOutcomeError" });
  });
  await expect(agent.generate({ prompt: "go", runId: "r3" })).rejects.toMatchObject({
    code: "RUN_NEEDS_HUMAN",
  });
  const resolve = (run: string, effect: string) =>
    post(`/runs/${run}/resolve`, { effect, outcome: "done", output: { ok: true } });
  expect(await resolve("r1", "r3.1.0")).toMatchObject({ status: 404, answer: { code: "EFFECT_UNKNOWN" } });
  expect(await resolve("r3", "r3.1.0")).toMatchObject({ status: 200, answer: { effect: { state: "done" } } });
  expect(await resolve("r3", "r3.1.0")).toMatchObject({ status: 409, answer: { code: "EFFECT_SETTLED" } });
  expect(await agent.recover()).toMatchObject([{ runId: "r3", status: "completed" }]);
  expect(await post("/runs/r3/retry")).toMatchObject({ status: 409 });
});

it("a run is forked, run again, and pruned", async () => {
  expect(await post("/runs/r1/fork", { at: 99 })).toMatchObject({ status: 404 });
  expect(await post("/runs/r1/fork", { at: 0, id: "f1" })).toMatchObject({
    answer: { run_id: "f1", fork_of: "r1", step: 0, happened: [{ id: "r1.1.0", tool: "pay" }] },
  });
  expect(await post("/runs/r1/fork", { at: 0, id: "f1" })).toMatchObject({ status: 409 });
  expect(await post("/runs/r1/rerun", { agent: "other" })).toMatchObject({ status: 200 });
  expect(await post("/runs/prune", { days: 0, statuses: ["cancelled"] })).toMatchObject({
    answer: { removed: ["r2"], stubs: [] },
  });
  expect((await server.ask("/v1/missions/m1/runs/r2")).status).toBe(404);
});

it("queues are shown and set", async () => {
  expect(await post("/queues/mail", { total: 3, calls: { amount: 60, perMs: 60_000 } })).toMatchObject({
    status: 200,
  });
  expect(shapes.queueList.parse(await get("/queues")).queues).toMatchObject([
    { queue: "mail", settings: { total: 3 } },
  ]);
  expect(await post("/queues/mail", { totals: 3 })).toMatchObject({ status: 400 });
  expect(await post("/queues/mail", {})).toMatchObject({ status: 200 });
  expect(shapes.queueList.parse(await get("/queues")).queues).toEqual([]);
});

it("a mission without runs, and a run that does not exist, are 404", async () => {
  expect((await server.ask("/v1/missions/m2/runs")).status).toBe(404);
  expect((await server.ask("/v1/missions/m1/runs/nope")).status).toBe(404);
  expect(await post("/runs/nope/approve", { approved: true })).toMatchObject({ status: 404 });
  expect(await post("/runs/nope/cancel")).toMatchObject({ answer: { runs: [] } });
});

it("a run whose process died several times is allowed another attempt", async () => {
  const { journal } = store.log;
  await journal.insert(headRow("r9", { owner: "gone", leaseUntilMs: 1, deaths: 3 }), []);
  expect(await post("/runs/r9/retry")).toMatchObject({
    status: 200,
    answer: { mission_id: "m1", run_id: "r9", deaths: 3 },
  });
  expect(await journal.readHead("r9")).toMatchObject({ status: "running", owner: null, deaths: 0 });
});
