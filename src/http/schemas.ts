// zod schemas of requests and responses: requests are checked against them, the OpenAPI document describes responses with
// them, and tests check real responses against them.

import { z } from "zod";
import { CELL_STATUSES } from "../cell/classify.ts";
import { ERROR_CODES, type ErrorCode } from "../platform/errors.ts";
import { EVENT_KINDS } from "../registry/registry.ts";
import { COMMAND_REASONS } from "../snapshot/model/entry.ts";

/** Every schema with a name: the OpenAPI document refers to them, also from inside other schemas. */
export const NAMED = new Map<string, z.ZodType>();

export function named<T extends z.ZodType>(id: string, schema: T): T {
  const withName = schema.meta({ id }) as T;
  NAMED.set(id, withName);
  return withName;
}

export const health = named(
  "Health",
  z.object({
    /** `degraded`: a death has been unhandled for more than a minute. */
    status: z.enum(["ok", "degraded"]),
    uptime_seconds: z.number(),
    version: z.string(),
    /** Epoch seconds. */
    timestamp: z.number(),
    /**
     * Age of the oldest death without a checkpoint and a decision, or of the most overdue revival; 0 if there is none.
     * Absent where no pit answers.
     */
    oldest_unhandled_death_seconds: z.number().optional(),
  }),
);

export const errorBody = named(
  "Error",
  z.object({
    code: z.enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]]),
    message: z.string(),
    hint: z.string().nullable(),
    details: z.record(z.string(), z.unknown()),
  }),
);

export const mission = named(
  "Mission",
  z.looseObject({
    mission_id: z.string(),
    root: z.string(),
    worktree: z.string(),
    worktree_state: z.string(),
    unprotected: z.string().nullable(),
    silent_hooks: z.boolean(),
    waits_for_user: z.boolean(),
    cell: z.enum([...CELL_STATUSES, "gone"]),
    state: z.string(),
    agent: z.string().nullable(),
    command: z.array(z.string()).nullable(),
    pid: z.number().nullable(),
    epoch: z.number().nullable(),
    started_ms: z.number().nullable(),
    last_activity_ms: z.number().nullable(),
    last_progress_ms: z.number().nullable(),
    last_checkpoint: z.object({ id: z.string(), created_ms: z.number(), reason: z.string() }).nullable(),
    done_since: z.array(
      z.object({
        id: z.string(),
        source: z.string(),
        where: z.string(),
        name: z.string(),
        what: z.string(),
        state: z.string(),
        time_ms: z.number(),
      }),
    ),
    revivals_today: z.number(),
    revive: z.string().nullable(),
    wish: z.string().nullable(),
    next_action: z.string(),
    /** Only for a single mission; null in lists. */
    record: z.record(z.string(), z.unknown()).nullable(),
    problem: z.string().nullable(),
  }),
);

export const missionList = named("MissionList", z.object({ missions: z.array(mission) }));

export const checkpoint = named(
  "Checkpoint",
  z.object({
    mission: z.string(),
    id: z.string(),
    parent: z.string().nullable(),
    reason: z.string(),
    created_ms: z.number(),
    manifest: z.string(),
    files: z.number(),
    bytes: z.number(),
    degraded: z.boolean(),
    pinned: z.boolean(),
    proven_ms: z.number().nullable(),
  }),
);

export const checkpointList = named("CheckpointList", z.object({ checkpoints: z.array(checkpoint) }));

export const event = named(
  "Event",
  z.object({
    seq: z.int(),
    time_ms: z.number(),
    mission: z.string().nullable(),
    kind: z.enum(EVENT_KINDS),
    data: z.record(z.string(), z.unknown()),
  }),
);

export const eventList = named("EventList", z.object({ events: z.array(event) }));

/** Text that is printed on terminals and stored in files: limited, without control characters. */
const plainText = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[^\u0000-\u001f\u007f]*$/, "must not contain control characters");

export const heartbeatRequest = named(
  "HeartbeatRequest",
  z.object({
    status: plainText(200).min(1).optional(),
    /** The life that the caller belongs to; an earlier life is refused (INV-4). */
    epoch: z.int().positive().optional(),
    /** Accepted for compatibility: every heartbeat is on disk before the answer. */
    durable: z.boolean().optional(),
  }),
);

export const heartbeatAnswer = named(
  "HeartbeatAnswer",
  z.object({
    mission_id: z.string(),
    /** Epoch seconds, as written to the heartbeat file. */
    timestamp: z.number(),
    /** Always true: the heartbeat is on disk before the answer is sent. */
    durable: z.boolean(),
  }),
);

/** Unknown fields are ignored: a newer `lazarus checkpoint` may send more to an older pit. */
const checkpointRequest = named(
  "CheckpointRequest",
  z.object({
    /** A note stored with it. */
    message: plainText(500).nullable().optional(),
    /** Why it is taken; default manual. */
    reason: z.enum(COMMAND_REASONS).optional(),
    /** The name of the agent that is stored with it; default: that of the mission's agent. */
    agent: plainText(200).nullable().optional(),
    /** A live point, if anything changed. */
    live: z.boolean().optional(),
    /** Refuse unless the pit knows what changed, so that no walk of the cell is needed. */
    only_watched: z.boolean().optional(),
    /** Refuse unless the pit has the same version, configuration and environment (caller.ts). */
    caller: plainText(200).optional(),
  }),
);

/** Strict: a misspelt `dry_run` must not start an agent. */
const reviveRequest = named(
  "ReviveRequest",
  z.strictObject({
    /** Report the decision without acting. */
    dry_run: z.boolean().optional(),
    /** Start even if the checkpoint of the last life fails. */
    without_checkpoint: z.boolean().optional(),
  }),
);

/** Strict: a misspelt `checkpoint` must not restore the latest. */
const restoreRequest = named(
  "RestoreRequest",
  z.strictObject({
    /** Id, prefix of an id, `latest`, or a time. */
    checkpoint: plainText(200).optional(),
    /** Only these paths of the cell. */
    paths: z.array(plainText(4096)).max(1000).optional(),
    /** Only the files, or only the conversation. */
    part: z.enum(["files", "conversation"]).optional(),
    /** Stop a live agent first and revive it afterwards. */
    stop: z.boolean().optional(),
  }),
);

export const noRequest = named("Empty", z.strictObject({}));

export const actionRequests = {
  stop: noRequest,
  pause: noRequest,
  rest: noRequest,
  revive: reviveRequest,
  checkpoint: checkpointRequest,
  restore: restoreRequest,
} as const;

export const actionAnswer = named(
  "ActionAnswer",
  z.looseObject({ mission_id: z.string(), action: z.string() }),
);

export const webhookAnswer = named(
  "WebhookAnswer",
  z.looseObject({ outcome: z.enum(["created", "ignored"]), reason: z.string().nullable() }),
);

const count = z.coerce.number().pipe(z.int().nonnegative());

export const eventsQuery = z.object({
  after: count.optional().describe("only events after this sequence number"),
  limit: count.pipe(z.int().min(1).max(1000)).optional().describe("maximum number of events (default 100)"),
});

export const streamQuery = z.object({
  after: count
    .optional()
    .describe("replay events after this sequence number; the header Last-Event-ID takes precedence"),
  mission: z.string().optional().describe("only this mission"),
});
