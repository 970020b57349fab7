// `lazarus/health`: health and heartbeats inside a gateway that runs already. A fetch-style handler without a framework:
// it answers its own two paths and leaves every other one to its host by answering undefined.
import { type Config, resolveConfig } from "../cell/config.ts";
import { parseMissionId } from "../cell/mission-id.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import { isJsonObject } from "../platform/json-file.ts";
import { type Machine, systemMachine } from "../platform/machine.ts";
import { readBody } from "./body.ts";
import type { HeartbeatRequest } from "./port.ts";
import { recordHeartbeat } from "./record-heartbeat.ts";
import { refuseWithoutToken } from "./request-checks.ts";

/** Paths, token and version of a health handler. */
export interface HealthOptions {
  /** Where the cells are; or the whole configuration. */
  readonly missionsRoot?: string;
  readonly config?: Config;
  /** Bearer token for heartbeats. `false`: the gateway itself decides who may send them. Without it none are taken. */
  readonly token?: string | false;
  /** Put before both paths: "/lazarus" gives /lazarus/health. */
  readonly basePath?: string;
  /** What /health calls the version: the gateway's own. */
  readonly version?: string;
  readonly machine?: Machine;
}

/** Answers a request to one of its two paths; undefined for every other path. */
export type HealthHandler = (request: Request) => Promise<Response | undefined>;

const BODY_LIMIT_BYTES = 64 * 1024;
const MOST_STATUS_CHARACTERS = 200;

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
      const told = asLazarusError(error, "answering the request");
      return Response.json(told, { status: told.httpStatus });
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

/** By hand: this handler is mounted in other people's programs and brings no schema library along. */
async function readHeartbeat(request: Request): Promise<HeartbeatRequest> {
  const bytes = await readBody(request, BODY_LIMIT_BYTES);
  if (bytes.byteLength === 0) return {};
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("the body is not JSON in UTF-8");
  }
  if (!isJsonObject(value)) throw invalid("the body is not an object");
  const { status, epoch, durable } = value;
  if (status !== undefined && !isStatus(status)) throw invalid("status is not a line of 1 to 200 characters");
  if (epoch !== undefined && !(Number.isSafeInteger(epoch) && Number(epoch) > 0))
    throw invalid("epoch is not a whole number above 0");
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
    value.length <= MOST_STATUS_CHARACTERS &&
    !/[\u0000-\u001f\u007f]/.test(value)
  );
}

function invalid(message: string): LazarusError {
  return new LazarusError("BODY_INVALID", message, { hint: 'send {"status": "…"}, or nothing' });
}

function refuseOtherMethods(request: Request, ...methods: readonly string[]): void {
  if (methods.includes(request.method)) return;
  throw new LazarusError("METHOD_REFUSED", `this path takes ${methods.join(" and ")} only`);
}

function tokenNotSet(): LazarusError {
  return new LazarusError("TOKEN_REFUSED", "this gateway takes no heartbeats: it was given no token", {
    hint: "createHealthHandler({ token }), or token: false when the gateway checks who asks by itself",
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
