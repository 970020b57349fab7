// The HTTP API without a daemon: real cells, a real registry and real sockets.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type Config, resolveConfig } from "../../src/cell/config.ts";
import { initCell } from "../../src/cell/init.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { createPitPort } from "../../src/http/pit-port.ts";
import type { PitPort } from "../../src/http/port.ts";
import { type Http, type HttpOptions, mountHttp } from "../../src/http/server.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { systemMachine } from "../../src/platform/machine.ts";

export interface TestServer extends AsyncDisposable {
  readonly directory: string;
  readonly config: Config;
  readonly pitContext: PitContext;
  readonly port: PitPort;
  readonly http: Http;
  readonly token: string;
  readonly url: string;
  readonly logged: string[];
  /** Sends a request with the token. */
  ask(path: string, init?: RequestInit): Promise<Response>;
}

export interface TestServerOptions extends Partial<HttpOptions> {
  readonly missions?: readonly string[];
  readonly document?: Record<string, unknown>;
}

export function createPlace(document: Record<string, unknown> = {}) {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-http-"));
  const surroundings = { env: { LAZARUS_HOME: directory }, cwd: directory, isRoot: false };
  const effective = resolveConfig(surroundings, undefined, document);
  return { directory, effective, config: effective.config };
}

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const { directory, effective, config } = createPlace(options.document);
  for (const name of options.missions ?? ["m1"]) initCell(systemMachine, config, parseMissionId(name));
  const logged: string[] = [];
  const pitContext = openPitContext({
    machine: systemMachine,
    effective,
    version: "1.2.3",
    environment: { LAZARUS_HOME: directory },
    cwd: directory,
    log: (line) => logged.push(line),
    warn: (line) => logged.push(line),
  });
  const port = createPitPort(pitContext);
  const http = await mountHttp(port, {
    machine: systemMachine,
    version: "1.2.3",
    runDir: config.run_dir,
    settings: { tcpPort: 0, chosen: true },
    ...options,
  });
  const token = readFileSync(join(options.runDir ?? config.run_dir, "token"), "utf8").trim();
  return {
    directory,
    config,
    pitContext,
    port,
    http,
    token,
    url: http.url!,
    logged,
    ask: (path, init = {}) =>
      fetch(`${http.url}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${token}`, ...init.headers },
      }),
    async [Symbol.asyncDispose]() {
      await http[Symbol.asyncDispose]();
      pitContext[Symbol.dispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** A server with short timeouts may also cut off a valid request on a busy machine, so this retries until it answers. */
export async function isServed(url: string): Promise<void> {
  const ask = () =>
    fetch(`${url}/health`).then(
      ({ status }) => status,
      () => undefined,
    );
  await expect.poll(ask, { timeout: 45_000 }).toBe(200);
}

/** A request with any header, which fetch does not allow, or over the unix socket. */
export function askRaw(options: {
  url?: string;
  socketPath?: string | undefined;
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}): Promise<{ status: number; body: string; headers: IncomingMessage["headers"] }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    body: string;
    headers: IncomingMessage["headers"];
  }>();
  const { port } = options.url === undefined ? { port: undefined } : new URL(options.url);
  const outgoing = request(
    {
      host: "127.0.0.1",
      ...(port === undefined ? { socketPath: options.socketPath } : { port }),
      path: options.path,
      method: options.method ?? "GET",
      headers: options.headers ?? {},
      agent: false,
    },
    (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode!,
          body: Buffer.concat(chunks).toString(),
          headers: response.headers,
        }),
      );
    },
  );
  outgoing.on("error", reject);
  outgoing.end(options.body);
  return promise;
}
