// The embeddable handler, and the three examples run as programs.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resolveConfig } from "../../src/cell/config.ts";
import { initCell } from "../../src/cell/init.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { createHealthHandler } from "../../src/http/health.ts";
import * as shapes from "../../src/http/schemas.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { COMPILE_CACHE } from "../cli/hermetic.ts";

let directory: string;
let missionsRoot: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-health-"));
  missionsRoot = join(directory, "missions");
  const surroundings = { env: {}, cwd: directory, isRoot: false };
  const { config } = resolveConfig(surroundings, undefined, { missions_root: missionsRoot });
  initCell(systemMachine, config, parseMissionId("m1"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const statusOnDisk = () =>
  JSON.parse(readFileSync(join(missionsRoot, "m1", "state", "heartbeat.json"), "utf8")).status;
const beat = (init: RequestInit = {}, mission = "m1") =>
  new Request(`http://gateway/v1/missions/${mission}/heartbeat`, { method: "POST", ...init });

describe("createHealthHandler", () => {
  it("handles its own paths and leaves the others to the host server", async () => {
    const handler = createHealthHandler({ missionsRoot, token: "t", version: "9" });
    const answer = await handler(new Request("http://gateway/health"));
    expect(shapes.health.parse(await answer!.json()).version).toBe("9");
    expect(await handler(new Request("http://gateway/"))).toBeUndefined();
    expect(await handler(new Request("http://gateway/v1/missions"))).toBeUndefined();
    const based = createHealthHandler({ missionsRoot, basePath: "/lazarus/" });
    expect(await based(new Request("http://gateway/health"))).toBeUndefined();
    expect((await based(new Request("http://gateway/lazarus/health")))?.status).toBe(200);
  });

  it("accepts heartbeats with the token, or with token: false; otherwise refuses them", async () => {
    const code = async (options: { token?: string | false }, headers: Record<string, string> = {}) => {
      const response = await createHealthHandler({ missionsRoot, ...options })(
        beat({ headers, body: '{"status":"busy","durable":true}' }),
      );
      return ((await response!.json()) as { code?: string }).code;
    };
    expect(await code({})).toBe("TOKEN_REFUSED");
    expect(await code({ token: "secret" })).toBe("TOKEN_REFUSED");
    expect(await code({ token: "secret" }, { authorization: "Bearer Secret" })).toBe("TOKEN_REFUSED");
    expect(await code({ token: "secret" }, { authorization: "Bearer secret" })).toBeUndefined();
    expect(await code({ token: false })).toBeUndefined();
    expect(statusOnDisk()).toBe("busy");
  });

  it("refuses what the pit would refuse", async () => {
    const handler = createHealthHandler({ missionsRoot, token: false });
    const of = async (request: Request) => {
      const response = await handler(request);
      return [response!.status, ((await response!.json()) as { code: string }).code];
    };
    expect(await of(beat({ body: "x".repeat(70_000) }))).toEqual([413, "BODY_TOO_LARGE"]);
    expect(await of(beat({ body: "{" }))).toEqual([400, "BODY_INVALID"]);
    expect(await of(beat({ body: '{"status":"\\u0007"}' }))).toEqual([400, "BODY_INVALID"]);
    expect(await of(beat({ body: '{"epoch":0}' }))).toEqual([400, "BODY_INVALID"]);
    expect(await of(beat({}, "nobody"))).toEqual([404, "MISSION_UNKNOWN"]);
    expect(await of(beat({}, "%2e%2e%2fx"))).toEqual([400, "MISSION_ID_INVALID"]);
    expect(await of(new Request("http://gateway/v1/missions/m1/heartbeat"))).toEqual([405, "METHOD_REFUSED"]);
    expect(() => createHealthHandler({})).toThrowError(expect.objectContaining({ code: "USAGE" }));
  });
});

describe.each(["node-http", "hono", "express"])("examples/health/%s.ts", (example) => {
  it("serves health, heartbeats and pages of the host", async () => {
    const file = join(import.meta.dirname, "..", "..", "examples", "health", `${example}.ts`);
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", file, missionsRoot, "0"],
      {
        env: { PATH: process.env.PATH, TOKEN: "t0ken", ...COMPILE_CACHE },
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    try {
      const { value: line } = await createInterface(child.stdout)[Symbol.asyncIterator]().next();
      const url = `http://127.0.0.1:${/\d+$/.exec(String(line))![0]}`;
      expect(shapes.health.parse(await (await fetch(`${url}/health`)).json()).status).toBe("ok");
      expect(await (await fetch(url)).text()).toBe("the gateway's own page\n");
      const send = (headers: Record<string, string>) =>
        fetch(`${url}/v1/missions/m1/heartbeat`, {
          method: "POST",
          headers,
          body: JSON.stringify({ status: example, durable: true }),
        });
      expect((await send({})).status).toBe(401);
      expect((await send({ authorization: "Bearer t0ken" })).status).toBe(202);
      expect(statusOnDisk()).toBe(example);
    } finally {
      child.kill("SIGKILL");
    }
  });
});
