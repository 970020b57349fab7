// Starts the HTTP API: token, app, unix socket, TCP on loopback. The pit does not depend on it, so an address that is in
// use is only a warning, unless the config sets the port. The addresses are written to `<run_dir>/http.json` for other
// programs.
import type { Server } from "node:http";
import { pitSocketFile } from "../pit/paths.ts";
import { removeFile } from "../platform/durable.ts";
import { asLazarusError } from "../platform/errors.ts";
import { writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import { type App, type AppOptions, createApp } from "./app.ts";
import { addressPath } from "./caller.ts";
import { DEFAULT_LISTEN_LIMITS, type ListenLimits, listenSocket, listenTcp } from "./listen.ts";
import type { PitPort } from "./port.ts";
import type { HttpSettings } from "./settings.ts";
import { ensureToken } from "./token.ts";
import { createTokenCheck } from "./tokens.ts";

export interface HttpOptions
  extends Pick<AppOptions, "version" | "webhooks" | "streamLimits" | "moreMetrics"> {
  readonly machine: Machine;
  readonly runDir: string;
  readonly settings: HttpSettings;
  readonly listenLimits?: Partial<ListenLimits>;
  /** What commands must have in common with the pit, so that it may act for them (caller.ts). */
  readonly caller?: () => string;
}

export interface Http extends AsyncDisposable {
  readonly app: App;
  /** Undefined when there is no TCP listener. */
  readonly url: string | undefined;
  /** Undefined when the socket could not be created. */
  readonly socket: string | undefined;
  /** Addresses that could not be used, as sentences. */
  readonly warnings: readonly string[];
  /** Writes the addresses again, for a `caller` that has changed. */
  announce(): void;
}

/** Usage: `await using http = await mountHttp(port, options)`. */
export async function mountHttp(pit: PitPort, options: HttpOptions): Promise<Http> {
  const { machine, runDir, settings } = options;
  const closing = new AbortController();
  const limits = { ...DEFAULT_LISTEN_LIMITS, ...options.listenLimits };
  const grantOf = createTokenCheck(machine, runDir, ensureToken(machine, runDir));
  const app = createApp(pit, { ...options, clock: machine.clock, grantOf, closing: closing.signal });
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
  const announce = () =>
    writeJsonFile(machine.disk, addressPath(runDir), {
      url: url ?? null,
      socket: socket ?? null,
      pid: process.pid,
      version: options.version,
      caller: options.caller?.() ?? null,
    });
  try {
    const tcp = await listenPort(app, settings, limits, warnings);
    if (tcp !== undefined) {
      servers.push(tcp.server);
      url = `http://127.0.0.1:${tcp.tcpPort}`;
    }
    announce();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    app,
    url,
    socket,
    warnings,
    announce,
    async [Symbol.asyncDispose]() {
      await close();
      removeFile(machine.disk, addressPath(runDir));
    },
  };
}

/** If the default port is in use, use any free port. */
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
    const failure = asLazarusError(error, `listening on port ${tcpPort}`);
    if (chosen || failure.code !== "HTTP_ADDRESS_TAKEN") throw failure;
    const tcp = await listenTcp(app, 0, limits);
    warnings.push(`${failure.message}; using port ${tcp.tcpPort} instead`);
    return tcp;
  }
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
