// Which requests are accepted, and their size limits: all others are refused with their own error code before a handler runs.
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refuseForeignHost, refuseForeignOrigin, sameText } from "../../src/http/request-checks.ts";
import { httpSettings } from "../../src/http/settings.ts";
import { ensureToken } from "../../src/http/token.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createSeededIds } from "../../src/testing/seeded-ids.ts";
import { askRaw, createPlace, isServed, startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

const codeOf = (body: string) => JSON.parse(body).code;
const codeIn = async (response: Response) => codeOf(await response.text());

describe("the Host header", () => {
  it.each(["127.0.0.1", "127.0.0.1:7433", "localhost", "LOCALHOST:80", "[::1]:7433"])(
    "%s is accepted",
    (host) => {
      refuseForeignHost(host);
    },
  );

  it.each([
    "example.com",
    "localhost.example.com",
    "127.0.0.1.example.com",
    "127.0.0.2",
    "evil@localhost",
    "localhost:80:80",
    "0.0.0.0",
    "",
    null,
  ])("%s is refused", (host) => {
    expect(() => refuseForeignHost(host)).toThrowError(expect.objectContaining({ code: "HOST_REFUSED" }));
  });

  it("is checked on every route, including /health and webhooks", async () => {
    for (const [method, path] of [
      ["GET", "/health"],
      ["GET", "/v1/missions"],
      ["POST", "/v1/webhooks/gitea"],
      ["GET", "/nowhere"],
    ] as const) {
      const { status, body } = await askRaw({
        url: server.url,
        path,
        method,
        headers: { host: "evil.example:80" },
      });
      expect([path, status, codeOf(body)]).toEqual([path, 403, "HOST_REFUSED"]);
    }
  });
});

describe("the Origin header", () => {
  it("must be the pit's own address, or absent", () => {
    refuseForeignOrigin(undefined, "localhost:7433");
    refuseForeignOrigin("http://localhost:7433", "localhost:7433");
    for (const origin of ["null", "http://localhost:3000", "https://localhost:7433", "http://evil.example"])
      expect(() => refuseForeignOrigin(origin, "localhost:7433")).toThrow(LazarusError);
  });

  it("of another site is refused, even with the token", async () => {
    const { status, body } = await askRaw({
      url: server.url,
      path: "/v1/missions/m1/stop",
      method: "POST",
      headers: { origin: "http://evil.example", authorization: `Bearer ${server.token}` },
    });
    expect([status, codeOf(body)]).toEqual([403, "ORIGIN_REFUSED"]);
  });
});

describe("the token", () => {
  it("is not required for /health", async () => {
    const answer = await (await fetch(`${server.url}/health`)).json();
    expect(answer).toEqual({
      status: "ok",
      oldest_unhandled_death_seconds: 0,
      uptime_seconds: expect.any(Number),
      version: "1.2.3",
      timestamp: expect.any(Number),
    });
  });

  it.each([undefined, "Bearer", "Bearer wrong", "Basic eDp5", "Bearer x y"])(
    "%s is refused",
    async (given) => {
      for (const path of ["/v1/missions", "/metrics", "/openapi.json", "/v1/events", "/nowhere"]) {
        const headers: Record<string, string> = given === undefined ? {} : { authorization: given };
        const response = await fetch(`${server.url}${path}`, { headers });
        expect([response.status, await codeIn(response)]).toEqual([401, "TOKEN_REFUSED"]);
        expect(response.headers.get("www-authenticate")).toBe("Bearer");
      }
    },
  );

  it("is stored in a private file, survives a restart, and is never printed", async () => {
    const path = join(server.config.run_dir, "token");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(server.token).toMatch(/^[\w-]{43}$/);
    expect(ensureToken(systemMachine, server.config.run_dir)).toBe(server.token);
    const response = await fetch(`${server.url}/v1/missions`, { headers: { authorization: "Bearer wrong" } });
    expect(await response.text()).not.toContain(server.token);
  });

  it("comes from the injected random source; a truncated file is replaced, a readable one refused", () => {
    const { config } = createPlace();
    const machine = { ...systemMachine, ids: createSeededIds(7) };
    const token = ensureToken(machine, config.run_dir);
    expect(token).toBe(Buffer.from(createSeededIds(7).bytes(32)).toString("base64url"));
    const path = join(config.run_dir, "token");
    writeFileSync(path, token.slice(0, 5));
    expect(ensureToken(machine, config.run_dir)).toMatch(/^[\w-]{43}$/);
    chmodSync(path, 0o644);
    expect(() => ensureToken(machine, config.run_dir)).toThrowError(
      expect.objectContaining({ code: "TOKEN_EXPOSED" }),
    );
  });

  it("is compared in full", () => {
    expect(sameText("abc", "abc")).toBe(true);
    for (const other of ["abd", "ab", "abcd", ""]) expect(sameText("abc", other)).toBe(false);
  });
});

describe("the unix socket", () => {
  it("is private to its owner and needs no token for reading", async () => {
    const { socket } = server.http;
    expect(statSync(socket!).mode & 0o777).toBe(0o600);
    const { status } = await askRaw({
      socketPath: socket,
      path: "/v1/missions",
      headers: { host: "localhost" },
    });
    expect(status).toBe(200);
  });

  it("allows an agent no more than reading and heartbeats without a token", async () => {
    const post = async (path: string, headers: Record<string, string> = {}) => {
      const { status, body } = await askRaw({
        socketPath: server.http.socket,
        path: `/v1/missions/m1/${path}`,
        method: "POST",
        headers: { host: "localhost", ...headers },
        body: "{}",
      });
      return [status, JSON.parse(body).code];
    };
    expect(await post("heartbeat")).toEqual([202, undefined]);
    for (const action of ["revive", "stop", "pause", "rest", "restore", "checkpoints"])
      expect([action, ...(await post(action))]).toEqual([action, 401, "TOKEN_REFUSED"]);
    expect(await post("checkpoints", { authorization: `Bearer ${server.token}` })).toEqual([200, undefined]);
  });

  it("requires the token if its mode is widened", async () => {
    const { socket } = server.http;
    chmodSync(socket!, 0o666);
    const request = { socketPath: socket, path: "/v1/missions", headers: { host: "localhost" } };
    expect((await askRaw(request)).status).toBe(401);
    chmodSync(socket!, 0o600);
    expect((await askRaw(request)).status).toBe(200);
  });

  it("is taken over from a dead pit, but not from a running one", async () => {
    await using first = await startTestServer();
    await using second = await startTestServer({ runDir: first.config.run_dir });
    expect(second.http.socket).toBeUndefined();
    expect(second.http.warnings.join()).toContain("is already in use by another program");
    await using stale = await startTestServer();
    await stale.http[Symbol.asyncDispose]();
    writeFileSync(stale.http.socket!, "");
    await using again = await startTestServer({ runDir: stale.config.run_dir });
    expect(again.http.warnings).toEqual([]);
  });
});

describe("the TCP port", () => {
  it("is set in the config: a number, 0, or none", () => {
    expect(httpSettings({}, undefined)).toEqual({ tcpPort: 7433, chosen: false });
    expect(httpSettings({ pit: { http_port: 8123 } }, "c")).toEqual({ tcpPort: 8123, chosen: true });
    expect(httpSettings({ pit: { http_port: null } }, "c")).toEqual({ tcpPort: null, chosen: true });
    for (const wrong of [-1, 65_536, 1.5, "80", {}])
      expect(() => httpSettings({ pit: { http_port: wrong } }, "c")).toThrowError(
        expect.objectContaining({ code: "CONFIG_INVALID" }),
      );
  });

  it("falls back to a free port by default, and is an error if it was set", async () => {
    const tcpPort = Number(new URL(server.url).port);
    await using other = await startTestServer({ settings: { tcpPort, chosen: false } });
    expect(other.url).not.toBe(server.url);
    expect(other.http.warnings).toHaveLength(1);
    await expect(startTestServer({ settings: { tcpPort, chosen: true } })).rejects.toMatchObject({
      code: "HTTP_ADDRESS_TAKEN",
    });
    await using none = await startTestServer({ settings: { tcpPort: null, chosen: true } });
    expect(none.http.url).toBeUndefined();
  });

  it("is written to http.json while the pit runs", async () => {
    const address = JSON.parse(readFileSync(join(server.config.run_dir, "http.json"), "utf8"));
    expect(address).toMatchObject({ url: server.url, socket: server.http.socket });
  });
});

describe("bodies", () => {
  it.each([
    ["/v1/missions/m1/heartbeat", 64 * 1024],
    ["/v1/missions/m1/checkpoints", 1024 * 1024],
    ["/v1/webhooks/gitea", 1024 * 1024],
  ])("of %s above %i bytes are refused, with or without Content-Length", async (path, limit) => {
    const body = "x".repeat(limit + 1);
    const withLength = await server.ask(path, { method: "POST", body });
    expect([withLength.status, await codeIn(withLength)]).toEqual([413, "BODY_TOO_LARGE"]);
    const chunked = new Blob([body]).stream();
    const withoutLength = await server.ask(path, {
      method: "POST",
      body: chunked,
      duplex: "half",
    } as RequestInit);
    expect([withoutLength.status, await codeIn(withoutLength)]).toEqual([413, "BODY_TOO_LARGE"]);
  });

  it.each([
    "{",
    "[]",
    '"x"',
    '{"status":7}',
    '{"status":""}',
    '{"status":"a\\u001b[31m"}',
    '{"epoch":-1}',
    "\u0000",
  ])("that are invalid (%s) are refused", async (body) => {
    const response = await server.ask("/v1/missions/m1/heartbeat", { method: "POST", body });
    expect([response.status, await codeIn(response)]).toEqual([400, "BODY_INVALID"]);
  });
});

describe("requests that never end", () => {
  /** Sends some bytes, then nothing, until the server has closed. Resolves with its response. */
  const hold = (url: string, bytes: string) =>
    new Promise<string>((resolve) => {
      let answer = "";
      const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes));
      socket.on("data", (chunk) => {
        answer += chunk;
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(answer));
    });

  it("are cut off: half a header, and half a body", async () => {
    await using shortTimeouts = await startTestServer({
      listenLimits: { headersTimeoutMs: 300, requestTimeoutMs: 500, checkEveryMs: 100 },
    });
    const halves = await Promise.all([
      hold(shortTimeouts.url, "GET /health HTTP/1.1\r\nHost: loc"),
      hold(
        shortTimeouts.url,
        `POST /v1/missions/m1/heartbeat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${shortTimeouts.token}\r\nContent-Length: 50\r\n\r\n{"st`,
      ),
    ]);
    for (const answer of halves) expect(answer).toContain("408");
    await isServed(shortTimeouts.url);
  });

  it("a header of 20,000 bytes is refused", async () => {
    const answer = await hold(
      server.url,
      `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
    );
    expect(answer).toContain("431");
  });
});

describe("paths and methods", () => {
  it("that do not exist are reported", async () => {
    for (const path of ["/", "/v1", "/v1/missions/m1/explode", "/v2/missions"]) {
      const response = await server.ask(path);
      expect([path, response.status, await codeIn(response)]).toEqual([path, 404, "ROUTE_UNKNOWN"]);
    }
    const wrong = await server.ask("/v1/missions/m1/stop");
    expect([wrong.status, wrong.headers.get("allow"), await codeIn(wrong)]).toEqual([
      405,
      "POST",
      "METHOD_REFUSED",
    ]);
  });

  it.each(["..%2f..%2fetc", "%2e%2e", "a%00b", "-rf", "%1b%5b31m", "x".repeat(200)])(
    "a mission called %s is refused",
    async (name) => {
      const response = await server.ask(`/v1/missions/${name}/heartbeat`, { method: "POST" });
      expect([400, 404]).toContain(response.status);
      expect(["MISSION_ID_INVALID", "ROUTE_UNKNOWN"]).toContain(await codeIn(response));
    },
  );
});
