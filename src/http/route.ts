// The shape of a route, and what handlers have in common.
import type { ZodObject, ZodType } from "zod";
import { type MissionId, parseMissionId } from "../cell/mission-id.ts";
import type { Clock } from "../platform/clock.ts";
import type { ErrorCode } from "../platform/errors.ts";
import type { StreamLimits } from "./event-stream.ts";
import type { PitPort, WebhookHandler } from "./port.ts";
import type { Scope } from "./request-checks.ts";

/** What a handler receives. */
export interface Call {
  readonly pit: PitPort;
  readonly clock: Clock;
  readonly headers: Headers;
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal;
  readonly body: Uint8Array;
  param(name: string): string;
  readonly query: Readonly<Record<string, string>>;
  /** Closes the connection without a response. */
  hangUp(): void;
  readonly webhooks: Readonly<Record<string, WebhookHandler>>;
  readonly streamLimits: Partial<StreamLimits>;
  healthNow(): Promise<Readonly<Record<string, unknown>>>;
  metricsNow(): Promise<string>;
  openApi(): object;
}

export interface Route {
  readonly method: "get" | "post";
  /** Parameters in braces, as OpenAPI writes them. */
  readonly path: string;
  readonly summary: string;
  /** What a token must allow. `none`: no token; `signature`: the webhook handler verifies the sender itself. */
  readonly scope: Scope | "none" | "signature";
  /** Needs no token on the unix socket, like every `read`. Agents have that socket, so nothing that grants or acts (INV-11). */
  readonly forAgents?: boolean;
  readonly query?: ZodObject;
  readonly body?: ZodType;
  /** If absent, the body is not read. */
  readonly bodyLimitBytes?: number;
  readonly answer: { readonly type: string; readonly schema?: ZodType; readonly status?: number };
  readonly errors: readonly ErrorCode[];
  handle(call: Call): Promise<Response> | Response;
}

export const JSON_TYPE = "application/json";
export const BODY_BYTES = 1024 * 1024;

/** A JSON response. */
export function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": JSON_TYPE } });
}

/** The mission in the path. */
export function missionOf(call: Call): MissionId {
  return parseMissionId(call.param("mission"));
}
