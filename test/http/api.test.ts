// Every route with the real functions of the pit: responses match the schemas in the OpenAPI document.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { describeApi } from "../../src/http/openapi.ts";
import { ROUTES } from "../../src/http/routes.ts";
import * as shapes from "../../src/http/schemas.ts";
import { startMission } from "../../src/pit/start-mission.ts";
import { makeDirectory, replaceFile } from "../../src/platform/durable.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ missions: ["m1", "m2"] });
});
afterAll(() => server[Symbol.asyncDispose]());

const get = async (path: string) => (await server.ask(path)).json();
const post = async (path: string, body: unknown = {}) => {
  const response = await server.ask(path, { method: "POST", body: JSON.stringify(body) });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
};

describe("missions", () => {
  it("are listed and returned one by one", async () => {
    const list = shapes.missionList.parse(await get("/v1/missions"));
    expect(list.missions.map(({ mission_id: id, cell }) => [id, cell])).toEqual([
      ["m1", "healthy"],
      ["m2", "healthy"],
    ]);
    const one = shapes.mission.parse(await get("/v1/missions/m1"));
    expect(one).toMatchObject({ mission_id: "m1", state: "none", agent: null });
  });

  it("yield to other work while many are read", async () => {
    await using crowd = await startTestServer({ missions: Array.from({ length: 40 }, (_, n) => `m${n}`) });
    let turns = 0;
    const timer = setInterval(() => {
      turns += 1;
    }, 0);
    const missions = await crowd.port.missions();
    clearInterval(timer);
    expect(missions).toHaveLength(40);
    expect(turns).toBeGreaterThanOrEqual(3);
  });

  it("that do not exist are 404 with the error schema", async () => {
    const response = await server.ask("/v1/missions/nobody");
    expect(response.status).toBe(404);
    expect(shapes.errorBody.parse(await response.json())).toMatchObject({
      code: "MISSION_UNKNOWN",
      hint: "lazarus init nobody",
    });
  });
});

describe("heartbeats", () => {
  const fileOf = (mission: string) =>
    JSON.parse(readFileSync(join(server.config.missions_root, mission, "state", "heartbeat.json"), "utf8"));

  it("are on disk before the response is sent", async () => {
    const { status, answer } = await post("/v1/missions/m1/heartbeat", { status: "thinking", durable: true });
    expect(status).toBe(202);
    expect(shapes.heartbeatAnswer.parse(answer).durable).toBe(true);
    expect(fileOf("m1")).toMatchObject({ status: "thinking", timestamp: answer.timestamp });
  });

  it("need no body", async () => {
    const response = await server.ask("/v1/missions/m2/heartbeat", { method: "POST" });
    const answer = shapes.heartbeatAnswer.parse(await response.json());
    await expect.poll(() => fileOf("m2").timestamp, { timeout: 20_000 }).toBe(answer.timestamp);
  });

  it("of a mission without a cell, or of an earlier life, are refused", async () => {
    expect(await post("/v1/missions/nobody/heartbeat")).toMatchObject({
      status: 404,
      answer: { code: "MISSION_UNKNOWN" },
    });
    const directory = join(server.config.run_dir, "agents", "m2");
    makeDirectory(systemMachine.disk, directory);
    replaceFile(systemMachine.disk, join(directory, "epoch"), "3\n");
    expect(await post("/v1/missions/m2/heartbeat", { epoch: 2 })).toMatchObject({
      status: 409,
      answer: { code: "EPOCH_FENCED" },
    });
    expect(await post("/v1/missions/m2/heartbeat", { epoch: 3 })).toMatchObject({ status: 202 });
  });
});

describe("checkpoints and events", () => {
  it("a checkpoint is taken, listed and recorded as an event", async () => {
    const { status, answer } = await post("/v1/missions/m1/checkpoints", { message: "before lunch" });
    expect(status).toBe(200);
    expect(shapes.actionAnswer.parse(answer)).toMatchObject({
      action: "checkpoint",
      outcome: expect.any(String),
    });
    const { checkpoints } = shapes.checkpointList.parse(await get("/v1/missions/m1/checkpoints"));
    expect(checkpoints.map(({ id }) => id)).toEqual([answer.checkpoint]);
    const { events } = shapes.eventList.parse(await get("/v1/missions/m1/events"));
    expect(events.at(-1)).toMatchObject({ kind: "checkpoint", data: { checkpoint: answer.checkpoint } });
    const later = shapes.eventList.parse(await get(`/v1/missions/m1/events?after=${events.at(-1)!.seq}`));
    expect(later.events).toEqual([]);
  });

  it.each(["after=-1", "after=x", "limit=0", "limit=100000"])("a query of %s is refused", async (query) => {
    expect((await server.ask(`/v1/missions/m1/events?${query}`)).status).toBe(400);
  });
});

describe("actions", () => {
  it.each(["stop", "pause", "rest", "revive"])(
    "%s of a mission that has never had an agent is 404",
    async (action) => {
      expect(await post(`/v1/missions/m1/${action}`)).toMatchObject({
        status: 404,
        answer: { code: "AGENT_UNKNOWN" },
      });
    },
  );

  it("pause, continue and stop an agent; its environment is not exposed", async () => {
    await startMission(server.pitContext, {
      mission: "m1",
      agent: "sleeper",
      command: ["sleep", "60"],
      cwd: null,
      env: { API_KEY: "very-secret" },
      revive: "no",
      substitute: null,
      stall_seconds: null,
    });
    const whole = await (await server.ask("/v1/missions/m1")).text();
    expect(JSON.parse(whole)).toMatchObject({ state: "running", agent: "sleeper", command: ["sleep", "60"] });
    expect(whole).toContain("API_KEY");
    expect(whole).not.toContain("very-secret");
    // Before its command it is a shell that runs mv, which would count as a second process.
    const { pid } = JSON.parse(whole);
    const isSleep = () => readFileSync(`/proc/${pid}/cmdline`, "latin1").startsWith("sleep\0");
    await vi.waitUntil(isSleep, { timeout: 300_000 });
    expect(await post("/v1/missions/m1/pause")).toMatchObject({ status: 200, answer: { processes: 1 } });
    expect(await get("/v1/missions/m1")).toMatchObject({ state: "paused" });
    expect(await post("/v1/missions/m1/revive")).toMatchObject({ answer: { outcome: "continued" } });
    expect(await post("/v1/missions/m1/stop")).toMatchObject({
      status: 200,
      answer: { was_running: true, checkpoint: expect.any(String) },
    });
    expect(await get("/v1/missions/m1")).toMatchObject({ state: "stopped" });
    expect(await post("/v1/missions/m1/stop", { dry_run: true })).toMatchObject({ status: 400 });
  });

  it("refuses fields that it does not know, so that a typing mistake does not act", async () => {
    const before = await get("/v1/missions/m2/checkpoints");
    for (const [action, body] of [
      ["restore", { chekpoint: "10m" }],
      ["restore", { checkpoint: "latest", dry_run: true }],
      ["revive", { dryRun: true }],
      ["revive", { checkpoint: "latest" }],
      ["stop", { grace: 0 }],
      ["runs/prune", { days: 0, status: ["failed"] }],
      ["runs/r/cancel", { wait: 5 }],
      ["runs/r/wake", { force: true }],
    ] as const) {
      const { status, answer } = await post(`/v1/missions/m2/${action}`, body);
      expect([action, status]).toEqual([action, 400]);
      expect(answer).toMatchObject({
        code: "BODY_INVALID",
        message: expect.stringMatching(/^the body: .*nrecognized key/),
      });
    }
    expect(await get("/v1/missions/m2/checkpoints")).toEqual(before);
    // A newer command may send more.
    expect(await post("/v1/missions/m2/checkpoints", { new_field: 1 })).toMatchObject({ status: 200 });
  });
});

describe("metrics", () => {
  it("are in Prometheus format", async () => {
    const response = await server.ask("/metrics");
    expect(response.headers.get("content-type")).toContain("version=0.0.4");
    const text = await response.text();
    for (const line of text.trimEnd().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [0-9.e+-]+)$/);
    expect(text).toContain('lazarus_cells{status="healthy"} 2');
    expect(text).toMatch(/^lazarus_checkpoints_total [1-9]/m);
    expect(text).toMatch(/^lazarus_deaths_total 0$/m);
    expect(text).toMatch(/^lazarus_checkpoint_duration_seconds_count [1-9]/m);
    expect(text).toContain('route="post /v1/missions/{mission}/heartbeat",status="2xx",le="0.02"');
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("are accepted by promtool", async ({ skip }) => {
    const input = await (await server.ask("/metrics")).text();
    const { status, error, stderr } = spawnSync("promtool", ["check", "metrics"], {
      input,
      encoding: "utf8",
    });
    if (error !== undefined) skip("promtool is not installed");
    // 3 means warnings about names.
    expect([0, 3], stderr).toContain(status);
  });
});

describe("the OpenAPI document", () => {
  it("is valid and describes exactly the served routes", async () => {
    const document = (await get("/openapi.json")) as { paths: Record<string, Record<string, unknown>> };
    const validation = await new Validator().validate(structuredClone(document));
    expect(validation.errors ?? []).toEqual([]);
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`),
    );
    const served = server.http.app.routes.filter(({ method }) => method !== "ALL");
    expect(described.sort()).toEqual(served.map(({ method, path }) => `${method} ${path}`).sort());
  });

  it("has a schema for every body and JSON response, and every reference resolves", () => {
    const document = JSON.parse(JSON.stringify(describeApi(ROUTES, "1")));
    const references = new Set<string>();
    JSON.stringify(document, (key, value) => {
      if (key === "$ref") references.add(value);
      return value;
    });
    const resolves = (reference: string) =>
      reference
        .replace(/^#\//, "")
        .split("/")
        .reduce((value, key) => value?.[key], document) !== undefined;
    expect(references.size).toBeGreaterThan(12);
    expect([...references].filter((reference) => !resolves(reference))).toEqual([]);
    expect(JSON.stringify(document)).not.toContain("undefined");
  });
});
