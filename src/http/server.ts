// Opens the API: token, app, unix socket, TCP on loopback. The pit's real work does not depend on it, so an address that
// cannot be had is a warning and not an error, as long as a human did not ask for it by number. Where it listens is
// written to `<run_dir>/http.json` for the CLI, the dashboard and agents.
import type { Server } from "node:http";
import { join } from "node:path";
import { pitSocketFile } from "../pit/paths.ts";
import { removeFile } from "../platform/durable.ts";
import { asLazarusError } from "../platform/errors.ts";
import { writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { DEFAULT_LISTEN_LIMITS, type ListenLimits, listenSocket, listenTcp } from "./listen.ts";
import type { PitPort } from "./port.ts";
import type { HttpSettings } from "./settings.ts";
import { ensureToken } from "./token.ts";

export interface HttpOptions
  extends Pick<AppOptions, "version" | "webhooks" | "streamLimits" | "moreMetrics"> {
  readonly machine: Machine;
  readonly runDir: string;
  readonly settings: HttpSettings;
  readonly listenLimits?: Partial<ListenLimits>;
}

export interface Http extends AsyncDisposable {
  readonly app: App;
  /** Undefined when there is no TCP listener. */
  readonly url: string | undefined;
  /** Undefined when the socket could not be made. */
  readonly socket: string | undefined;
  /** What could not be had, in sentences. */
  readonly warnings: readonly string[];
}

/** How a daemon offers the API: `await using http = await mountHttp(port, options)`. */
export async function mountHttp(pit: PitPort, options: HttpOptions): Promise<Http> {
  const { machine, runDir, settings } = options;
  const closing = new AbortController();
  const limits = { ...DEFAULT_LISTEN_LIMITS, ...options.listenLimits };
  const token = ensureToken(machine, runDir);
  const app = createApp(pit, { ...options, clock: machine.clock, token, closing: closing.signal });
  const warnings: string[] = [];
  const servers: Server[] = [];
  const close = async () => {
    closing.abort();
    await Promise.all(servers.map(closeServer));
  };

  const path = pitSocketFile(runDir);
  let socket: string | undefined;
  try {
    servers.push(await listenSocket(machine.disk, app, path, limits));
    socket = path;
  } catch (error) {
    warnings.push(asLazarusError(error, `listening on ${path}`, runDir).message);
  }
  let url: string | undefined;
  try {
    const got = await listenPort(app, settings, limits, warnings);
    if (got !== undefined) {
      servers.push(got.server);
      url = `http://127.0.0.1:${got.tcpPort}`;
    }
    writeJsonFile(machine.disk, addressPath(runDir), {
      url: url ?? null,
      socket: socket ?? null,
      pid: process.pid,
    });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    app,
    url,
    socket,
    warnings,
    async [Symbol.asyncDispose]() {
      await close();
      removeFile(machine.disk, addressPath(runDir));
    },
  };
}

export function addressPath(runDir: string): string {
  return join(runDir, "http.json");
}

/** A port that nobody chose may be another user's: then any free one will do. */
async function listenPort(
  app: App,
  { tcpPort, chosen }: HttpSettings,
  limits: ListenLimits,
  warnings: string[],
): Promise<Awaited<ReturnType<typeof listenTcp>> | undefined> {
  if (tcpPort === null) return undefined;
  try {
    return await listenTcp(app, tcpPort, limits);
  } catch (error) {
    const met = asLazarusError(error, `listening on port ${tcpPort}`);
    if (chosen || met.code !== "HTTP_ADDRESS_TAKEN") throw met;
    const got = await listenTcp(app, 0, limits);
    warnings.push(`${met.message}; this pit listens on port ${got.tcpPort} instead`);
    return got;
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
