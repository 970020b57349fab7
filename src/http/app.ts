// The Hono app: mounts the route table. Each request passes the checks in this order: Host, Origin, token and its scope,
// body size; then the handler runs. server.ts connects it to sockets. Every error is sent as {code, message, hint, details} with the
// status from the error table; of unexpected errors only the message is sent.
import { type Context, Hono } from "hono";
import type { Clock } from "../platform/clock.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import { readBody } from "./body.ts";
import type { StreamLimits } from "./event-stream.ts";
import {
  countFamilies,
  createEventCounters,
  createRequestTimer,
  type Family,
  processFamilies,
  renderMetrics,
  unhandledFamily,
} from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import type { PitPort, WebhookHandler } from "./port.ts";
import { refuseBeyondGrant, refuseForeignHost, refuseForeignOrigin } from "./request-checks.ts";
import type { Route } from "./route.ts";
import { missionInRequest, ROUTES } from "./routes.ts";
import type { TokenCheck } from "./tokens.ts";

export interface AppOptions {
  readonly clock: Clock;
  readonly version: string;
  /** What a token allows; undefined for an unknown one. */
  readonly grantOf: TokenCheck;
  readonly webhooks?: Readonly<Record<string, WebhookHandler>>;
  /** Aborts when the server closes; open streams end then. */
  readonly closing?: AbortSignal;
  readonly streamLimits?: Partial<StreamLimits>;
  /** Additional metrics. */
  readonly moreMetrics?: () => readonly Family[];
}

/** Facts about the connection, from the listener. */
export interface Connection {
  /** The unix socket, to which only the pit's user can connect. Agents can too: without a token, it allows what they need. */
  readonly trusted?: boolean;
  readonly hangUp?: () => void;
}

export type App = Hono<{ Bindings: Connection }>;

/** A death that is handled later than this makes the pit `degraded`. */
const DEGRADED_SECONDS = 60;
/** /health needs no token: all records are read at most once per second for it. */
const HEALTH_MS = 1000;

function createMemo<T>(clock: Clock, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly atMs: number; readonly value: Promise<T> } | undefined;
  return () => {
    if (last === undefined || clock.monotonicMs() - last.atMs >= HEALTH_MS)
      last = { atMs: clock.monotonicMs(), value: read() };
    return last.value;
  };
}

export function createApp(pit: PitPort, options: AppOptions): App {
  const { clock, version } = options;
  const app: App = new Hono();
  const startedMs = clock.monotonicMs();
  const requestTimer = createRequestTimer();
  const eventCounters = createEventCounters((page) => pit.events(page));
  const never = new AbortController().signal;
  const uptimeSeconds = () => (clock.monotonicMs() - startedMs) / 1000;
  let document: object | undefined;

  const unhandled = createMemo(clock, () => pit.oldestUnhandledSeconds());
  const healthNow = async () => {
    const seconds = await unhandled();
    return {
      status: seconds > DEGRADED_SECONDS ? "degraded" : "ok",
      uptime_seconds: uptimeSeconds(),
      version,
      timestamp: clock.nowMs() / 1000,
      oldest_unhandled_death_seconds: seconds,
    };
  };
  const metricsNow = async () =>
    renderMetrics([
      ...processFamilies(version, uptimeSeconds()),
      ...countFamilies(await pit.counts()),
      unhandledFamily(await unhandled()),
      ...eventCounters.families(),
      requestTimer.family(),
      ...(options.moreMetrics?.() ?? []),
    ]);

  const serve = async (route: Route, context: Context<{ Bindings: Connection }>): Promise<Response> => {
    const startedRequestMs = clock.monotonicMs();
    let status = 500;
    try {
      const { raw } = context.req;
      const mission = missionInRequest(
        route,
        (name) => context.req.param(name),
        () => context.req.query(),
      );
      checkRequest(route, mission, context, options.grantOf);
      const body =
        route.bodyLimitBytes === undefined ? new Uint8Array() : await readBody(raw, route.bodyLimitBytes);
      const response = await route.handle({
        pit,
        clock,
        headers: raw.headers,
        // A getter, because only streams need it and creating it is the most expensive part of a request.
        get signal() {
          return AbortSignal.any([raw.signal, options.closing ?? never]);
        },
        body,
        param: (name) => context.req.param(name) ?? "",
        get query() {
          return context.req.query();
        },
        hangUp: () => context.env?.hangUp?.(),
        webhooks: options.webhooks ?? {},
        streamLimits: options.streamLimits ?? {},
        healthNow,
        metricsNow,
        openApi: () => (document ??= describeApi(ROUTES, version)),
      });
      status = response.status;
      return response;
    } catch (error) {
      const response = errorResponse(error);
      status = response.status;
      return response;
    } finally {
      requestTimer.observe(
        `${route.method} ${route.path}`,
        status,
        (clock.monotonicMs() - startedRequestMs) / 1000,
      );
    }
  };

  for (const route of ROUTES) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
    app.on(route.method.toUpperCase(), path, (context) => serve(route, context));
  }
  mountRefusals(app, options.grantOf);
  app.onError((error) => errorResponse(error));
  return app;
}

/** Unknown paths and methods. */
function mountRefusals(app: App, grantOf: TokenCheck): void {
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    app.all(path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) => {
      const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());
      const answer = refuse(context, grantOf, () => {
        throw new LazarusError("METHOD_REFUSED", `${path} supports only ${methods.join(" and ")}`, {
          hint: "see GET /openapi.json",
        });
      });
      answer.headers.set("allow", methods.join(", "));
      return answer;
    });
  }
  app.notFound((context) =>
    refuse(context, grantOf, () => {
      throw new LazarusError("ROUTE_UNKNOWN", "no such route", { hint: "see GET /openapi.json" });
    }),
  );
}

function checkRequest(
  { scope, forAgents }: Pick<Route, "scope" | "forAgents">,
  mission: string | undefined,
  context: Context<{ Bindings: Connection }>,
  grantOf: TokenCheck,
): void {
  const { headers } = context.req.raw;
  const host = headers.get("host");
  refuseForeignHost(host);
  refuseForeignOrigin(headers.get("origin"), host!);
  if (scope === "none" || scope === "signature") return;
  if (context.env?.trusted === true && (scope === "read" || forAgents === true)) return;
  refuseBeyondGrant(headers.get("authorization"), grantOf, { scope, mission });
}

/** Checks the token first, so that an unauthorized client cannot learn which paths exist. */
function refuse(
  context: Context<{ Bindings: Connection }>,
  grantOf: TokenCheck,
  fail: () => never,
): Response {
  try {
    const anyToken: TokenCheck = (token) => grantOf(token) && { scope: "operate", mission: null };
    checkRequest({ scope: "read" }, undefined, context, anyToken);
    return fail();
  } catch (error) {
    return errorResponse(error);
  }
}

export function errorResponse(error: unknown): Response {
  const failure = asLazarusError(error, "answering the request");
  const headers = new Headers({ "content-type": "application/json" });
  if (failure.code === "TOKEN_REFUSED") headers.set("www-authenticate", "Bearer");
  // Close the connection instead of reading the rest of the body.
  if (failure.code === "BODY_TOO_LARGE") headers.set("connection", "close");
  return new Response(JSON.stringify(failure), { status: failure.httpStatus, headers });
}
