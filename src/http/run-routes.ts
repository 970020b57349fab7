// Routes about the durable runs of a mission. Each calls one operation of src/run/operations; none decides anything itself.
import type { ZodType } from "zod";
import type { ErrorCode } from "../platform/errors.ts";
import { LazarusError } from "../platform/errors.ts";
import type { JournalStatus } from "../run/journal/journal.ts";
import { plainJson } from "../run/log/plain-json.ts";
import { readRecord } from "../run/log/read.ts";
import { resolveEntry } from "../run/log/resolve.ts";
import type { RunLog } from "../run/log/run-log.ts";
import type { Json } from "../run/model/types.ts";
import { approveRun } from "../run/operations/approve.ts";
import { cancelRun } from "../run/operations/cancel.ts";
import { type Fork, forkRun, rerunRun } from "../run/operations/fork.ts";
import { listRuns } from "../run/operations/list.ts";
import { pruneRuns } from "../run/operations/prune.ts";
import { listQueues, setQueue } from "../run/operations/queue.ts";
import { retryRun } from "../run/operations/retry.ts";
import { sendToRun } from "../run/operations/send.ts";
import { showRun } from "../run/operations/show.ts";
import { wakeRun } from "../run/operations/wake.ts";
import { check, parseBody } from "./body.ts";
import { BODY_BYTES, type Call, JSON_TYPE, json, missionOf, type Route } from "./route.ts";
import * as shapes from "./run-schemas.ts";
import { noRequest } from "./schemas.ts";

const DAY_MS = 86_400_000;
const DEFAULT_RUNS = 100;
const RUNS = "/v1/missions/{mission}/runs";

const READ_ERRORS: readonly ErrorCode[] = [
  ...([
    "MISSION_ID_INVALID",
    "RUN_UNKNOWN",
    "RUN_NEWER",
    "RUN_DAMAGED",
    "RUN_KEY_WRONG",
    "RUN_PLAINTEXT",
  ] as const),
  ...(["RUN_STORE_DAMAGED", "RUN_STORE_NEWER", "RUN_STORE_FOREIGN", "RUN_STORE_UNREACHABLE"] as const),
];
const WRITE_ERRORS: readonly ErrorCode[] = [
  ...READ_ERRORS,
  ...(["RUN_BUSY", "RUN_ENDED", "RUN_STALE_LEASE", "BODY_INVALID", "BODY_TOO_LARGE", "DISK_FULL"] as const),
  "RUN_NOT_STORABLE",
];

type Work = (log: RunLog, call: Call) => Promise<unknown>;

function read(path: string, summary: string, schema: ZodType, work: Work): Route {
  return {
    ...{ method: "get", path, summary, scope: "read" },
    answer: { type: JSON_TYPE, schema },
    errors: READ_ERRORS,
    handle: (call) => call.pit.withRuns(missionOf(call), async (log) => json(await work(log, call))),
  };
}

interface Action<T> {
  readonly path: string;
  readonly summary: string;
  readonly body: ZodType<T>;
  readonly errors?: readonly ErrorCode[];
  work(log: RunLog, request: T, call: Call): Promise<object>;
}

function action<T>({ path, summary, body, errors = [], work }: Action<T>): Route {
  return {
    ...{ method: "post", path, summary, scope: "operate", body, bodyLimitBytes: BODY_BYTES },
    answer: { type: JSON_TYPE, schema: shapes.runAnswer },
    errors: [...WRITE_ERRORS, ...errors],
    async handle(call) {
      const mission = missionOf(call);
      const request = parseBody(call.body, body);
      const result = await call.pit.withRuns(mission, (log) => work(log, request, call));
      return json({ mission_id: mission, ...result });
    },
  };
}

const runOf = (call: Call) => call.param("run");

async function describeRun(log: RunLog, runId: string): Promise<unknown> {
  const { transcript = [], effects = [], output = null, error = null } = (await readRecord(log, runId)) ?? {};
  return plainJson({ ...(await showRun(log, runId)), transcript, effects, output, error });
}

function describeFork({ head, happened }: Fork): object {
  const effects = happened.map(({ id, tool, state }) => ({ id, tool, state }));
  return { run_id: head.id, fork_of: head.forkOf, step: head.forkStep, happened: effects };
}

export const RUN_ROUTES: readonly Route[] = [
  {
    ...read(RUNS, "durable runs of a mission, newest first", shapes.runList, async (log, call) => {
      const { status, limit = DEFAULT_RUNS } = check(call.query, shapes.runsQuery, "the query");
      const statuses = status === undefined ? undefined : [status as JournalStatus];
      return { runs: await listRuns(log, { statuses, limit }) };
    }),
    query: shapes.runsQuery,
    errors: [...READ_ERRORS, "BODY_INVALID"],
  },
  read(
    `${RUNS}/{run}`,
    "one run: transcript, effects, waits, inbox, child runs, usage",
    shapes.runView,
    (log, call) => describeRun(log, runOf(call)),
  ),
  action({
    path: `${RUNS}/{run}/approve`,
    summary: "answer a request for approval; without `request`, the only open one",
    body: shapes.approveRequest,
    errors: ["RUN_APPROVAL_INVALID"],
    async work(log, { request, approved, reason }, call) {
      const answered = await approveRun(log, runOf(call), request, { approved, reason });
      return { run_id: runOf(call), request: answered.request.id, verdict: answered.verdict };
    },
  }),
  action({
    path: `${RUNS}/{run}/send`,
    summary: "send a message to the model, or with `name` to a tool that waits for it",
    body: shapes.sendRequest,
    errors: ["USAGE"],
    async work(log, { message, name, id }, call) {
      if (message === undefined) {
        throw new LazarusError("BODY_INVALID", "the body has no message", { hint: "see GET /openapi.json" });
      }
      return { run_id: runOf(call), ...(await sendToRun(log, runOf(call), message, { name, id })) };
    },
  }),
  action({
    path: `${RUNS}/{run}/cancel`,
    summary: "end a run and its child runs; effects in progress become unknown and are listed",
    body: shapes.cancelRequest,
    async work(log, { wait_ms: waitMs = 0 }, call) {
      const runs = await cancelRun(log, runOf(call), waitMs);
      return {
        runs: runs.map(({ runId, status, unknownEffects }) => ({
          ...{ run_id: runId, status, unknown_effects: unknownEffects },
        })),
      };
    },
  }),
  action({
    path: `${RUNS}/{run}/wake`,
    summary: "end the sleep or wait of a run now",
    body: noRequest,
    errors: ["RUN_APPROVAL_INVALID"],
    async work(log, _, call) {
      const waits = await wakeRun(log, runOf(call));
      return { run_id: runOf(call), waits: waits.map(({ id, kind, names }) => ({ id, kind, names })) };
    },
  }),
  action({
    path: `${RUNS}/{run}/resolve`,
    summary: "record the outcome of an effect that is unknown",
    body: shapes.resolveRequest,
    errors: ["EFFECT_UNKNOWN", "EFFECT_SETTLED"],
    async work(log, { effect, outcome, output, reason }, call) {
      if (!effect.startsWith(`${runOf(call)}.`)) {
        throw new LazarusError("EFFECT_UNKNOWN", `effect ${effect} does not belong to run ${runOf(call)}`, {
          hint: `lazarus runs show ${runOf(call)}`,
        });
      }
      const given = {
        ...(output === undefined ? {} : { output: output as Json }),
        ...(reason === undefined ? {} : { reason }),
      };
      return { effect: await resolveEntry(log, effect, { outcome, ...given } as never) };
    },
  }),
  action({
    path: `${RUNS}/{run}/retry`,
    summary: "allow a run that kept crashing to continue",
    body: noRequest,
    work: async (log, _, call) => ({ run_id: runOf(call), deaths: await retryRun(log, runOf(call)) }),
  }),
  action({
    path: `${RUNS}/{run}/fork`,
    summary: "create a run that shares the steps up to `at`",
    body: shapes.forkRequest,
    errors: ["RUN_STEP_UNKNOWN", "RUN_ID_TAKEN"],
    work: async (log, { at, id, agent }, call) =>
      describeFork(await forkRun(log, runOf(call), at, { runId: id, agentId: agent })),
  }),
  action({
    path: `${RUNS}/{run}/rerun`,
    summary: "run the input of a run again",
    body: shapes.rerunRequest,
    errors: ["RUN_ID_TAKEN"],
    work: async (log, { id, agent }, call) =>
      describeFork(await rerunRun(log, runOf(call), { runId: id, agentId: agent })),
  }),
  action({
    path: `${RUNS}/prune`,
    summary: "remove runs that ended long ago",
    body: shapes.pruneRequest,
    work: (log, { days, keep, statuses }) =>
      pruneRuns(log, { olderThanMs: days * DAY_MS, keepLast: keep, statuses }),
  }),
  read(
    "/v1/missions/{mission}/queues",
    "queues of runs, with their limits",
    shapes.queueList,
    async (log) => ({
      queues: await listQueues(log),
    }),
  ),
  action({
    path: "/v1/missions/{mission}/queues/{queue}",
    summary: "set the limits of a queue; an empty object removes them",
    body: shapes.queueSettings,
    errors: ["USAGE"],
    async work(log, settings, call) {
      const isEmpty = Object.keys(settings).length === 0;
      await setQueue(log, call.param("queue"), isEmpty ? null : settings);
      return { queue: call.param("queue"), settings };
    },
  }),
];
