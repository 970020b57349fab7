// Malformed and malicious requests, written byte by byte: each is refused or its connection closed, none reaches a
// handler that it should not, and the next valid request is served.
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { isServed, startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
/** Short timeouts, for requests that only a timeout ends. */
let timeoutServer: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  timeoutServer = await startTestServer({
    listenLimits: { headersTimeoutMs: 400, requestTimeoutMs: 800, checkEveryMs: 50, maxConnections: 40 },
  });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await timeoutServer[Symbol.asyncDispose]();
});
afterEach(async () => {
  expect((await server.ask("/v1/missions")).status).toBe(200);
  await isServed(timeoutServer.url);
});

const auth = (to = server) => `Host: localhost\r\nAuthorization: Bearer ${to.token}\r\n`;

/** Sends the pieces one after the other, then waits until the server has closed. */
function exchange(pieces: readonly string[], pauseMs = 0, to = server): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(Number(new URL(to.url).port), "127.0.0.1", async () => {
      for (const piece of pieces) {
        if (socket.destroyed) return;
        socket.write(piece);
        if (pauseMs > 0) await new Promise((wait) => setTimeout(wait, pauseMs));
      }
    });
    socket.on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
  });
}
const statuses = (answer: string) =>
  [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

describe("a request line", () => {
  it("with an absolute URL is checked by its Host header and served by its path", async () => {
    const foreign = await exchange([
      `GET http://evil.example/v1/missions HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`,
    ]);
    expect(statuses(foreign)).toEqual([403]);
    const unsigned = await exchange([
      `GET http://evil.example/v1/missions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
    ]);
    expect(statuses(unsigned)[0]).toBeGreaterThanOrEqual(400);
  });

  it.each([
    "GET /v1/missions/../../health HTTP/1.1",
    "GET //evil.example/v1/missions HTTP/1.1",
    "GET /v1/missions/m1%00 HTTP/1.1",
    "GET /v1/missions/%ff HTTP/1.1",
    "TRACE /v1/missions HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "CONNECT localhost:22 HTTP/1.1",
    "PROPFIND /v1/missions HTTP/1.1",
  ])("%s without a token reveals nothing", async (line) => {
    const answer = await exchange([`${line}\r\nHost: localhost\r\nConnection: close\r\n\r\n`]);
    if (line.includes("health")) return expect(answer).not.toContain("missions_root");
    expect(statuses(answer)[0] ?? 400).toBeGreaterThanOrEqual(400);
    expect(answer).not.toContain(server.directory);
  });

  it("of another protocol, or garbage, closes the connection", async () => {
    for (const bytes of [
      "\x16\x03\x01\x02\x00\x01\x00",
      "SSH-2.0-x\r\n",
      "GET /health\r\n\r\n",
      "\r\n\r\n\r\n",
    ])
      expect(statuses(await exchange([bytes], 0, timeoutServer))[0] ?? 400).toBeGreaterThanOrEqual(400);
  });
});

describe("headers", () => {
  it("that name two hosts are refused", async () => {
    const answer = await exchange([
      "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ]);
    // Node keeps the first of two and ignores the second.
    expect(answer).not.toContain("evil");
    const other = await exchange([
      "GET /health HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ]);
    expect(statuses(other)[0]).toBeGreaterThanOrEqual(400);
  });

  it("without Host are refused, even in HTTP/1.0", async () => {
    for (const version of ["1.0", "1.1"])
      expect(
        statuses(await exchange([`GET /health HTTP/${version}\r\nConnection: close\r\n\r\n`]))[0] ?? 400,
      ).toBeGreaterThanOrEqual(400);
  });

  it("in thousands are refused", async () => {
    const many = Array.from({ length: 3000 }, (_, n) => `X-${n}: ${n}\r\n`).join("");
    expect(statuses(await exchange([`GET /health HTTP/1.1\r\nHost: localhost\r\n${many}\r\n`]))).toEqual([
      431,
    ]);
  });

  it.each(["Basic x", "Bearer", "Bearer  ", "bearer \t", "Token x", `Bearer ${"x".repeat(8000)}`])(
    "Authorization: %s is not a token",
    async (given) => {
      const answer = await exchange([
        `GET /v1/missions HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${given}\r\nConnection: close\r\n\r\n`,
      ]);
      expect(statuses(answer)).toEqual([401]);
    },
  );

  it("of a CORS preflight are refused", async () => {
    const answer = await exchange([
      "OPTIONS /v1/missions/m1/stop HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
    ]);
    expect(statuses(answer)).toEqual([403]);
    expect(answer.toLowerCase()).not.toContain("access-control-allow");
  });
});

describe("bodies", () => {
  const post = (headers: string, to = server) =>
    `POST /v1/missions/m1/heartbeat HTTP/1.1\r\n${auth(to)}${headers}\r\n`;

  it("with two lengths, or a length and chunks, are refused and nothing smuggled is served", async () => {
    const smuggled = `POST /v1/missions/m1/stop HTTP/1.1\r\n${auth()}\r\n`;
    for (const headers of [
      "Content-Length: 2\r\nContent-Length: 7\r\n",
      "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Content-Length: -1\r\n",
      "Content-Length: 1e3\r\n",
    ]) {
      const answer = await exchange([post(headers), `0\r\n\r\n${smuggled}`]);
      expect([headers, statuses(answer)]).toEqual([headers, [400]]);
    }
  });

  it("with endless chunk extensions, endless chunks or invalid chunks are limited", async () => {
    const chunked = post("Transfer-Encoding: chunked\r\n");
    const extended = await exchange([chunked, `1;${"x".repeat(200_000)}\r\n`]);
    expect(statuses(extended)[0] ?? 413).toBeGreaterThanOrEqual(400);
    const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
    const endless = await exchange([chunked, ...Array.from({ length: 20 }, () => chunk)]);
    expect(statuses(endless)[0] ?? 413).toBe(413);
    expect(statuses(await exchange([chunked, "zz\r\n{}\r\n0\r\n\r\n"]))).toEqual([400]);
  });

  it("that arrive slowly are cut off, and many of them do not block other clients", async () => {
    const slowRequests = Array.from({ length: 20 }, () =>
      exchange(
        [post("Content-Length: 1000\r\n", timeoutServer), ...Array.from({ length: 40 }, () => "x")],
        50,
        timeoutServer,
      ),
    );
    await isServed(timeoutServer.url);
    for (const answer of await Promise.all(slowRequests)) expect(statuses(answer)[0] ?? 408).toBe(408);
  });

  it("that are deeply nested, or use prototype names, are plain data", async () => {
    const deep = `${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`;
    for (const body of [
      deep,
      '{"__proto__":{"durable":true},"constructor":1}',
      '{"status":"x","status":"y"}',
    ]) {
      const response = await server.ask("/v1/missions/m1/heartbeat", { method: "POST", body });
      expect([202, 400]).toContain(response.status);
    }
    expect(({} as { durable?: boolean }).durable).toBeUndefined();
  });
});

describe("connections", () => {
  it("above the limit are closed, and new ones are accepted afterwards", async () => {
    const idle = Array.from({ length: 60 }, () => exchange([], 0, timeoutServer));
    await Promise.all(idle);
  });

  it("with pipelined requests are answered in order", async () => {
    const one = `GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const last = `GET /v1/missions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    expect(statuses(await exchange([one.repeat(50) + last]))).toEqual([
      ...Array.from({ length: 50 }, () => 200),
      401,
    ]);
  });
});
