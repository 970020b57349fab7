// The two listeners: TCP on 127.0.0.1 and a unix socket that only its owner can open. Limits header size, request time and
// connections. Never listens on any other address.
import { lstatSync } from "node:fs";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import { connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { Disk } from "../platform/disk.ts";
import { removeFile } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import type { App, Connection } from "./app.ts";

export interface ListenLimits {
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly checkEveryMs: number;
  readonly maxConnections: number;
}

export const DEFAULT_LISTEN_LIMITS: ListenLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  checkEveryMs: 1000,
  maxConnections: 512,
};

const MAX_HEADER_BYTES = 16 * 1024;
const KEEP_ALIVE_MS = 5000;
const LOOPBACK = "127.0.0.1";
/** The size of sun_path without the final NUL; macOS has four bytes fewer than Linux. */
const MAX_SOCKET_PATH_BYTES = process.platform === "darwin" ? 103 : 107;

/** Resolves when the server listens; returns the actual port. */
export async function listenTcp(
  app: App,
  tcpPort: number,
  limits: ListenLimits,
): Promise<{ server: Server; tcpPort: number }> {
  const server = createBoundedServer(app, limits, () => false);
  await waitForListening(
    server,
    () => server.listen({ host: LOOPBACK, port: tcpPort, exclusive: true }),
    `${LOOPBACK}:${tcpPort}`,
  );
  const address = server.address();
  return { server, tcpPort: typeof address === "object" && address !== null ? address.port : tcpPort };
}

/** Replaces a socket left behind by a dead pit, but not one that accepts connections. */
export async function listenSocket(
  disk: Disk,
  app: App,
  path: string,
  limits: ListenLimits,
): Promise<Server> {
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    throw new LazarusError("CONFIG_INVALID", `the socket path ${path} is too long`, {
      hint: `set run_dir to a path of less than ${MAX_SOCKET_PATH_BYTES - "/pit.sock".length} bytes`,
    });
  }
  if (await acceptsConnections(path)) throw addressTaken(path);
  removeFile(disk, path);
  const server = createBoundedServer(app, limits, () => isPrivateSocket(path));
  await waitForListening(
    server,
    () => {
      // Node binds within this call, so the socket never exists with a wider mode.
      const before = process.umask(0o177);
      try {
        server.listen(path);
      } finally {
        process.umask(before);
      }
    },
    path,
  );
  return server;
}

function createBoundedServer(app: App, limits: ListenLimits, isTrusted: () => boolean): Server {
  const listener: RequestListener = getRequestListener(
    (request, { incoming, outgoing }) => {
      const connection: Connection = {
        trusted: isTrusted(),
        hangUp: () => (incoming as IncomingMessage).socket.destroy() && outgoing.destroy(),
      };
      return app.fetch(request, connection);
    },
    { overrideGlobalObjects: false, hostname: "localhost" },
  );
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    listener,
  );
  server.maxConnections = limits.maxConnections;
  return server;
}

/** Whether the socket still has mode 0600; if someone widened it, the token is required again. */
function isPrivateSocket(path: string): boolean {
  try {
    const { mode, uid } = lstatSync(path);
    return (mode & 0o777) === 0o600 && uid === process.geteuid?.();
  } catch {
    return false;
  }
}

async function acceptsConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const client = connect(path);
    client.on("connect", () => {
      client.destroy();
      resolve(true);
    });
    client.on("error", () => resolve(false));
  });
}

async function waitForListening(server: Server, listen: () => void, where: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.once("listening", resolve);
  listen();
  try {
    await promise;
  } catch (error) {
    throw systemErrorCode(error) === "EADDRINUSE"
      ? addressTaken(where)
      : asLazarusError(error, `listening on ${where}`, where);
  } finally {
    server.removeListener("error", reject);
  }
}

function addressTaken(where: string): LazarusError {
  return new LazarusError("HTTP_ADDRESS_TAKEN", `${where} is already in use by another program`, {
    hint: "check for another pit with lazarus status, or set another pit.http_port in the config",
    details: { where },
  });
}
