// `lazarus/health`: health and heartbeat endpoints for an existing HTTP server. A fetch-style handler without a framework;
// it returns undefined for paths that are not its own.
import { type Config, resolveConfig } from "../cell/config.ts";
import { parseMissionId } from "../cell/mission-id.ts";
import { asLazarusError, LazarusError, quietly } from "../platform/errors.ts";
import { isJsonObject } from "../platform/json-file.ts";
import { type Machine, systemMachine } from "../platform/machine.ts";
import { readBody } from "./body.ts";
import type { HeartbeatRequest } from "./port.ts";
import { recordHeartbeat } from "./record-heartbeat.ts";
import { refuseWithoutToken } from "./request-checks.ts";

/** Paths, token and version of a health handler. */
export interface HealthOptions {
  /** The directory of the cells; or pass the whole configuration. */
  readonly missionsRoot?: string;
  readonly config?: Config;
  /** Bearer token for heartbeats. `false`: the host server authorizes requests itself. Without it heartbeats are refused. */
  readonly token?: string | false;
  /** Prefix of both paths: "/lazarus" gives /lazarus/health. */
  readonly basePath?: string;
  /** The version in /health: that of the host server. */
  readonly version?: string;
  readonly machine?: Machine;
}

/** Answers a request to one of its two paths; undefined for every other path. */
export type HealthHandler = (request: Request) => Promise<Response | undefined>;

const BODY_LIMIT_BYTES = 64 * 1024;
const MAX_STATUS_LENGTH = 200;

/** Creates a handler for health checks and heartbeats, to mount in an existing server. */
export function createHealthHandler(options: HealthOptions): HealthHandler {
  const machine = options.machine ?? systemMachine;
  const config = configOf(options);
  const base = (options.basePath ?? "").replace(/\/+$/, "");
  const startedMs = machine.clock.monotonicMs();
  const heartbeatPath = new RegExp(`^${escapePattern(base)}/v1/missions/([^/]+)/heartbeat$`);

  const beat = async (request: Request, mission: string) => {
    if (options.token !== false) {
      if (options.token === undefined) throw tokenNotSet();
      refuseWithoutToken(request.headers.get("authorization"), options.token);
    }
    const heartbeat = await readHeartbeat(request);
    return recordHeartbeat(machine, config, parseMissionId(decode(mission)), heartbeat);
  };

  return async (request) => {
    const { pathname } = new URL(request.url);
    const mission = heartbeatPath.exec(pathname)?.[1];
    try {
      if (pathname === `${base}/health`) {
        refuseOtherMethods(request, "GET", "HEAD");
        return Response.json({
          status: "ok",
          uptime_seconds: (machine.clock.monotonicMs() - startedMs) / 1000,
          version: options.version ?? "unknown",
          timestamp: machine.clock.nowMs() / 1000,
        });
      }
      if (mission === undefined) return undefined;
      refuseOtherMethods(request, "POST");
      return Response.json(await beat(request, mission), { status: 202 });
    } catch (error) {
      const failure = asLazarusError(error, "answering the request");
      return Response.json(failure, { status: failure.httpStatus });
    }
  };
}

function configOf({ config, missionsRoot }: HealthOptions): Config {
  if (config !== undefined) return config;
  if (missionsRoot === undefined) {
    throw new LazarusError("USAGE", "createHealthHandler needs missionsRoot or config", {
      hint: 'createHealthHandler({ missionsRoot: "/var/missions", token })',
    });
  }
  const surroundings = { env: {}, cwd: "/", isRoot: false };
  return resolveConfig(surroundings, undefined, { missions_root: missionsRoot }).config;
}

/** Checked by hand: this handler is embedded in other programs and must not load zod. */
async function readHeartbeat(request: Request): Promise<HeartbeatRequest> {
  const bytes = await readBody(request, BODY_LIMIT_BYTES);
  if (bytes.byteLength === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("the body is not valid UTF-8 JSON");
  }
  if (!isJsonObject(value)) throw invalid("the body is not an object");
  const { status, epoch, durable } = value;
  if (status !== undefined && !isStatus(status))
    throw invalid("status must be one line of 1 to 200 characters");
  if (epoch !== undefined && !(Number.isSafeInteger(epoch) && Number(epoch) > 0))
    throw invalid("epoch must be a whole number above 0");
  return {
    status,
    epoch: epoch as number | undefined,
    durable: durable === true,
  };
}

function isStatus(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value !== "" &&
    value.length <= MAX_STATUS_LENGTH &&
    !/[\u0000-\u001f\u007f]/.test(value)
  );
}

function invalid(message: string): LazarusError {
  return new LazarusError("BODY_INVALID", message, { hint: 'send {"status": "…"} or an empty body' });
}

function refuseOtherMethods(request: Request, ...methods: readonly string[]): void {
  if (methods.includes(request.method)) return;
  throw new LazarusError("METHOD_REFUSED", `this path supports only ${methods.join(" and ")}`);
}

function tokenNotSet(): LazarusError {
  return new LazarusError("TOKEN_REFUSED", "heartbeats are refused: no token is configured", {
    hint: "createHealthHandler({ token }), or token: false if the host server authorizes requests itself",
  });
}

function decode(text: string): string {
  return quietly(() => decodeURIComponent(text)) ?? text;
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
