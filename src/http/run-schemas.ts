// zod schemas of requests and responses about durable runs.
import { z } from "zod";
import { named } from "./schemas.ts";

const usage = z.object({ inputTokens: z.number(), outputTokens: z.number() });
const STATUSES = [
  ...["running", "queued", "waiting", "needs-human"],
  ...["completed", "failed", "cancelled", "timeout", "killed"],
] as const;
const status = z.enum(STATUSES as unknown as [string, ...string[]]);
const text = (maxLength: number) => z.string().min(1).max(maxLength);

export const runSummary = named(
  "RunSummary",
  z.object({
    runId: z.string(),
    agentId: z.string(),
    status,
    step: z.number(),
    phase: z.number(),
    parentRunId: z.string().nullable(),
    forkOf: z.string().nullable(),
    forkStep: z.number().nullable(),
    thread: z.string().nullable(),
    caller: z.string().nullable(),
    queue: z.string().nullable(),
    priority: z.number(),
    usage,
    wakeMs: z.number().nullable(),
    cancelMs: z.number().nullable(),
    waitsFor: z.array(z.string()),
    unknownEffects: z.number(),
    createdAtMs: z.number(),
    updatedAtMs: z.number(),
  }),
);

export const runList = named("RunList", z.object({ runs: z.array(runSummary) }));

export const runView = named(
  "Run",
  z.looseObject({
    summary: runSummary,
    waits: z.array(
      z.looseObject({ id: z.string(), kind: z.string(), state: z.string(), names: z.array(z.string()) }),
    ),
    inbox: z.array(z.looseObject({ id: z.string(), name: z.string() })),
    children: z.array(runSummary),
    totalUsage: usage,
    transcript: z.array(z.looseObject({ step: z.number() })),
    effects: z.array(z.looseObject({ id: z.string(), tool: z.string(), state: z.string() })),
    output: z.string().nullable(),
    error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
  }),
);

export const runsQuery = z.object({
  status: status.optional().describe("only runs with this status"),
  limit: z.coerce
    .number()
    .pipe(z.int().min(1).max(1000))
    .optional()
    .describe("maximum number of runs (default 100)"),
});

export const approveRequest = named(
  "RunApproveRequest",
  z.strictObject({ request: text(300).optional(), approved: z.boolean(), reason: text(2000).optional() }),
);
export const sendRequest = named(
  "RunSendRequest",
  z.strictObject({ message: z.unknown(), name: text(200).optional(), id: text(200).optional() }),
);
export const cancelRequest = named(
  "RunCancelRequest",
  z.strictObject({ wait_ms: z.int().min(0).max(30_000).optional() }),
);
export const resolveRequest = named(
  "RunResolveRequest",
  z.strictObject({
    effect: text(300),
    outcome: z.enum(["done", "retry", "fail"]),
    output: z.unknown().optional(),
    reason: text(2000).optional(),
  }),
);
export const forkRequest = named(
  "RunForkRequest",
  z.strictObject({ at: z.int().min(0), id: text(128).optional(), agent: text(200).optional() }),
);
export const rerunRequest = named(
  "RunRerunRequest",
  z.strictObject({ id: text(128).optional(), agent: text(200).optional() }),
);
export const pruneRequest = named(
  "RunPruneRequest",
  z.strictObject({
    days: z.number().min(0),
    keep: z.int().min(0).optional(),
    statuses: z.array(z.enum(["completed", "failed", "cancelled", "timeout", "killed"])).optional(),
  }),
);

const rate = z.object({ amount: z.number().positive(), perMs: z.number().positive() });
const limit = z.int().min(0).optional();

export const queueSettings = named(
  "QueueSettings",
  z.strictObject({
    ...{ total: limit, perWorker: limit, perCaller: limit, perModel: limit },
    ...{ calls: rate.optional(), tokens: rate.optional() },
  }),
);
export const queueList = named(
  "QueueList",
  z.object({
    queues: z.array(
      z.object({
        queue: z.string(),
        settings: queueSettings,
        queued: z.number(),
        running: z.number(),
        waiting: z.number(),
        callers: z.record(z.string(), z.object({ queued: z.number(), running: z.number() })),
      }),
    ),
  }),
);
export const runAnswer = named("RunAnswer", z.looseObject({}));
