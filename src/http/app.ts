// The app: the table of routes behind its guards, in one visible order: Host, Origin, token, size of the body, then the
// handler. Knows no sockets; server.ts serves it. Every error leaves as {code, message, hint, details} with the status of
// the one error table, and nothing of an unexpected one but its message.
import { type Context, Hono } from "hono";
import type { Clock } from "../platform/clock.ts";
import { asLazarusError, LazarusError } from "../platform/errors.ts";
import { readBody } from "./body.ts";
import type { StreamLimits } from "./event-stream.ts";
import {
  countFamilies,
  createEventTally,
  createRequestMeter,
  type Family,
  renderMetrics,
} from "./metrics.ts";
import { describeApi } from "./openapi.ts";
import type { PitPort, WebhookDoor } from "./port.ts";
import { refuseForeignHost, refuseForeignOrigin, refuseWithoutToken } from "./request-checks.ts";
import { ROUTES, type Route } from "./routes.ts";

export interface AppOptions {
  readonly clock: Clock;
  readonly version: string;
  readonly token: string;
  readonly webhooks?: Readonly<Record<string, WebhookDoor>>;
  /** Aborts when the server closes: streams end. */
  readonly closing?: AbortSignal;
  readonly streamLimits?: Partial<StreamLimits>;
  /** Further numbers of whoever runs the pit. */
  readonly moreMetrics?: () => readonly Family[];
}

/** What the listener says of a connection. */
export interface Connection {
  /** The kernel let only the owner connect, so no token is asked for. */
  readonly trusted?: boolean;
  readonly hangUp?: () => void;
}

export type App = Hono<{ Bindings: Connection }>;

export function createApp(pit: PitPort, options: AppOptions): App {
  const { clock, version } = options;
  const app: App = new Hono();
  const startedMs = clock.monotonicMs();
  const meter = createRequestMeter();
  const tally = createEventTally((page) => pit.events(page));
  const never = new AbortController().signal;
  const uptimeSeconds = () => (clock.monotonicMs() - startedMs) / 1000;
  let document: object | undefined;

  const healthNow = () => ({
    status: "ok",
    uptime_seconds: uptimeSeconds(),
    version,
    timestamp: clock.nowMs() / 1000,
  });
  const metricsNow = async () =>
    renderMetrics([
      {
        name: "lazarus_info",
        help: "The version.",
        type: "gauge",
        samples: [{ labels: { version }, value: 1 }],
      },
      {
        name: "lazarus_uptime_seconds",
        help: "Since the pit began.",
        type: "gauge",
        samples: [{ value: uptimeSeconds() }],
      },
      ...countFamilies(await pit.counts()),
      ...tally.families(),
      meter.family(),
      ...(options.moreMetrics?.() ?? []),
    ]);

  const serve = async (route: Route, context: Context<{ Bindings: Connection }>): Promise<Response> => {
    const beganMs = clock.monotonicMs();
    let status = 500;
    try {
      const { raw } = context.req;
      guard(route, raw.headers, context.env ?? {}, options.token);
      const body =
        route.bodyLimitBytes === undefined ? new Uint8Array() : await readBody(raw, route.bodyLimitBytes);
      const response = await route.handle({
        pit,
        clock,
        headers: raw.headers,
        // Asked for by streams alone, and the dearest part of a request.
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
      meter.observe(`${route.method} ${route.path}`, status, (clock.monotonicMs() - beganMs) / 1000);
    }
  };

  for (const route of ROUTES) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
    app.on(route.method.toUpperCase(), path, (context) => serve(route, context));
  }
  for (const path of new Set(ROUTES.map((route) => route.path))) {
    app.all(path.replaceAll(/\{(\w+)\}/g, ":$1"), (context) => {
      const methods = ROUTES.filter((route) => route.path === path).map(({ method }) => method.toUpperCase());
      const answer = refuse(context, options.token, () => {
        throw new LazarusError("METHOD_REFUSED", `${path} takes ${methods.join(" and ")} only`, {
          hint: "see GET /openapi.json",
        });
      });
      answer.headers.set("allow", methods.join(", "));
      return answer;
    });
  }
  app.notFound((context) =>
    refuse(context, options.token, () => {
      throw new LazarusError("ROUTE_UNKNOWN", "there is nothing here", { hint: "see GET /openapi.json" });
    }),
  );
  app.onError((error) => errorResponse(error));
  return app;
}

function guard(route: Pick<Route, "auth">, headers: Headers, connection: Connection, token: string): void {
  const host = headers.get("host");
  refuseForeignHost(host);
  refuseForeignOrigin(headers.get("origin"), host!);
  if (route.auth === "token" && connection.trusted !== true)
    refuseWithoutToken(headers.get("authorization"), token);
}

/** A stranger learns nothing of which paths there are. */
function refuse(context: Context<{ Bindings: Connection }>, token: string, say: () => never): Response {
  try {
    guard({ auth: "token" }, context.req.raw.headers, context.env ?? {}, token);
    return say();
  } catch (error) {
    return errorResponse(error);
  }
}

export function errorResponse(error: unknown): Response {
  const told = asLazarusError(error, "answering the request");
  const headers = new Headers({ "content-type": "application/json" });
  if (told.code === "TOKEN_REFUSED") headers.set("www-authenticate", "Bearer");
  // The rest of a body that is not wanted is not read, either.
  if (told.code === "BODY_TOO_LARGE") headers.set("connection", "close");
  return new Response(JSON.stringify(told), { status: told.httpStatus, headers });
}
