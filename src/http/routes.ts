// The route table: path, scope, body limit, response schema and handler of each route. The app and the OpenAPI
// document are both generated from it, so they cannot disagree.
import { parseMissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import { check, parseBody } from "./body.ts";
import { streamEvents } from "./event-stream.ts";
import { type ActionRequest, MISSION_ACTIONS } from "./port.ts";
import { BODY_BYTES, type Call, JSON_TYPE, json, missionOf, type Route } from "./route.ts";
import { RUN_ROUTES } from "./run-routes.ts";
import * as shapes from "./schemas.ts";

const HEARTBEAT_BODY_BYTES = 64 * 1024;
const DEFAULT_EVENTS = 100;

/**
 * The mission that a request is about: the one in its path, or the one that its query selects. Undefined for a route that
 * is about all missions, which a token for a single mission may not use.
 */
export function missionInRequest(
  route: Route,
  param: (name: string) => string | undefined,
  query: () => Readonly<Record<string, string>>,
): string | undefined {
  if (route.path.includes("{mission}")) return param("mission");
  return route.query !== undefined && "mission" in route.query.shape ? query().mission : undefined;
}

export const ROUTES: readonly Route[] = [
  {
    method: "get",
    path: "/health",
    summary: "health of the pit; no token required",
    scope: "none",
    answer: { type: JSON_TYPE, schema: shapes.health },
    errors: [],
    handle: async (call) => json(await call.healthNow()),
  },
  {
    method: "get",
    path: "/openapi.json",
    summary: "the OpenAPI document",
    scope: "read",
    answer: { type: JSON_TYPE },
    errors: [],
    handle: (call) => json(call.openApi()),
  },
  {
    method: "get",
    path: "/metrics",
    summary: "metrics in Prometheus format",
    scope: "read",
    answer: { type: "text/plain; version=0.0.4; charset=utf-8" },
    errors: [],
    handle: async (call) =>
      new Response(await call.metricsNow(), {
        headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
      }),
  },
  {
    method: "get",
    path: "/v1/missions",
    summary: "all missions with their cells and agents",
    scope: "read",
    answer: { type: JSON_TYPE, schema: shapes.missionList },
    errors: [],
    handle: async (call) => json({ missions: await call.pit.missions() }),
  },
  {
    method: "get",
    path: "/v1/missions/{mission}",
    summary: "one mission",
    scope: "read",
    answer: { type: JSON_TYPE, schema: shapes.mission },
    errors: ["MISSION_UNKNOWN", "MISSION_ID_INVALID"],
    handle: async (call) => json(await call.pit.mission(missionOf(call))),
  },
  {
    method: "post",
    path: "/v1/missions/{mission}/heartbeat",
    summary: "record a heartbeat; it is on disk before the response is sent",
    scope: "operate",
    forAgents: true,
    body: shapes.heartbeatRequest,
    bodyLimitBytes: HEARTBEAT_BODY_BYTES,
    answer: { type: JSON_TYPE, schema: shapes.heartbeatAnswer, status: 202 },
    errors: ["MISSION_UNKNOWN", "MISSION_ID_INVALID", "EPOCH_FENCED", "BODY_INVALID", "BODY_TOO_LARGE"],
    async handle(call) {
      const request = parseBody(call.body, shapes.heartbeatRequest);
      return json(await call.pit.heartbeat(missionOf(call), request), 202);
    },
  },
  {
    method: "get",
    path: "/v1/missions/{mission}/checkpoints",
    summary: "list the checkpoints of a mission, oldest first",
    scope: "read",
    answer: { type: JSON_TYPE, schema: shapes.checkpointList },
    errors: ["MISSION_ID_INVALID"],
    handle: async (call) => json({ checkpoints: await call.pit.checkpoints(missionOf(call)) }),
  },
  {
    method: "get",
    path: "/v1/missions/{mission}/events",
    summary: "events of a mission: the newest, or those after a sequence number",
    scope: "read",
    query: shapes.eventsQuery,
    answer: { type: JSON_TYPE, schema: shapes.eventList },
    errors: ["MISSION_ID_INVALID", "BODY_INVALID"],
    handle(call) {
      const { after, limit = DEFAULT_EVENTS } = check(call.query, shapes.eventsQuery, "the query");
      const page = after === undefined ? { last: limit } : { afterSeq: after, first: limit };
      return json({ events: call.pit.events({ mission: missionOf(call), ...page }) });
    },
  },
  ...MISSION_ACTIONS.map(
    (action): Route => ({
      method: "post",
      path: `/v1/missions/{mission}/${action === "checkpoint" ? "checkpoints" : action}`,
      summary: {
        stop: "stop the agent; it is not revived until a revive or run",
        pause: "suspend the agent; revive continues it",
        rest: "ask the agent to exit; it stays at rest until revive",
        revive: "start the agent again, or continue a paused one",
        checkpoint: "take a checkpoint now",
        restore: "restore the cell; refused under a live agent unless stop is true",
      }[action],
      scope: "operate",
      body: shapes.actionRequests[action],
      bodyLimitBytes: BODY_BYTES,
      answer: { type: JSON_TYPE, schema: shapes.actionAnswer },
      errors: [
        "MISSION_UNKNOWN",
        "MISSION_ID_INVALID",
        "AGENT_UNKNOWN",
        "AGENT_NOT_RUNNING",
        "AGENT_RUNNING",
        "CELL_IN_USE",
        "CHECKPOINT_UNKNOWN",
        "AGENT_NOT_STARTED",
        "AGENT_RECORD_DAMAGED",
        "LOCK_HELD",
        "CELL_NOT_WATCHED",
        "PIT_DIFFERS",
        "DISK_FULL",
        "BODY_INVALID",
        "BODY_TOO_LARGE",
      ],
      async handle(call) {
        const mission = missionOf(call);
        const request: ActionRequest = parseBody<object>(call.body, shapes.actionRequests[action]);
        const result = await call.pit.act(mission, action, request);
        return json({ mission_id: mission, action, ...result });
      },
    }),
  ),
  ...RUN_ROUTES,
  {
    method: "get",
    path: "/v1/events",
    summary: "server-sent events: replay after Last-Event-ID, then live",
    scope: "read",
    query: shapes.streamQuery,
    answer: { type: "text/event-stream" },
    errors: ["BODY_INVALID"],
    handle: openStream,
  },
  {
    method: "post",
    path: "/v1/webhooks/{name}",
    summary: "receive a signed webhook delivery; `gitea` is supported",
    scope: "signature",
    bodyLimitBytes: BODY_BYTES,
    answer: { type: JSON_TYPE, schema: shapes.webhookAnswer },
    errors: ["WEBHOOK_OFF", "SIGNATURE_REFUSED", "DELIVERY_REPEATED", "PROPOSAL_INVALID", "BODY_TOO_LARGE"],
    async handle(call) {
      const name = call.param("name");
      const webhook = Object.hasOwn(call.webhooks, name) ? call.webhooks[name] : undefined;
      if (webhook === undefined) {
        throw new LazarusError(
          "WEBHOOK_OFF",
          `webhook ${JSON.stringify(name.slice(0, 60))} is not configured`,
          {
            hint: "set pit.gitea in the config to enable the Gitea webhook; see docs/http.md",
          },
        );
      }
      return json(await webhook.receive(call.headers, call.body));
    },
  },
];

/** The newest event of the log; 0 when there is none. */
function newestSeq({ pit }: Call): number {
  return pit.events({ last: 1 }).at(-1)?.seq ?? 0;
}

function openStream(call: Call): Response {
  const query = check(call.query, shapes.streamQuery, "the query");
  const given = call.headers.get("last-event-id");
  const after =
    given === null ? query.after : check({ after: given }, shapes.streamQuery, "Last-Event-ID").after;
  const newest = newestSeq(call);
  const stream = streamEvents({
    source: call.pit,
    clock: call.clock,
    // A number from before the log was rebuilt: every event of the new log is new to this client.
    afterSeq: after === undefined ? newest : after > newest ? 0 : after,
    mission: query.mission === undefined ? undefined : parseMissionId(query.mission),
    signal: call.signal,
    onDropped: () => call.hangUp(),
    limits: call.streamLimits,
  });
  return new Response(stream, {
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      // Buffering proxies would delay events.
      "x-accel-buffering": "no",
    },
  });
}
