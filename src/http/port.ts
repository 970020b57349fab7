// What the HTTP API needs from the pit, as an interface: `pit-port.ts` implements it, tests use stubs. Every function
// returns plain data or throws a LazarusError.
import type { z } from "zod";
import type { MissionId } from "../cell/mission-id.ts";
import type { MissionView } from "../pit/view.ts";
import type { IndexedCheckpoint } from "../registry/checkpoints.ts";
import type { Event } from "../registry/registry.ts";
import type { RunLog } from "../run/log/run-log.ts";
import type { actionRequests, heartbeatAnswer, heartbeatRequest } from "./schemas.ts";

export const MISSION_ACTIONS = ["stop", "pause", "rest", "revive", "checkpoint", "restore"] as const;
export type MissionAction = (typeof MISSION_ACTIONS)[number];

/** The bodies of requests and responses, as `schemas.ts` checks them. */
export type HeartbeatRequest = z.infer<typeof heartbeatRequest>;
export type HeartbeatAnswer = z.infer<typeof heartbeatAnswer>;
type Requests = typeof actionRequests;
export type ActionRequest = z.infer<Requests["checkpoint"]> &
  z.infer<Requests["revive"]> &
  z.infer<Requests["restore"]>;

export interface EventPage {
  readonly mission?: string | undefined;
  readonly afterSeq?: number;
  readonly first?: number;
  readonly last?: number;
}

export interface PitPort {
  missions(): Promise<readonly MissionView[]>;
  mission(mission: MissionId): Promise<MissionView>;
  /** Cells by status and agents by state; cheaper than `missions`. */
  counts(): Promise<{ cells: Readonly<Record<string, number>>; agents: Readonly<Record<string, number>> }>;
  /** Age of the oldest unhandled death; 0 when there is none. */
  oldestUnhandledSeconds(): Promise<number>;
  heartbeat(mission: MissionId, request: HeartbeatRequest): Promise<HeartbeatAnswer>;
  /** Oldest first. */
  checkpoints(mission: MissionId): Promise<readonly IndexedCheckpoint[]>;
  events(page: EventPage): readonly Event[];
  act(
    mission: MissionId,
    action: MissionAction,
    request: ActionRequest,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Calls `work` with the run log of the mission's cell. Throws RUN_UNKNOWN when it has none. */
  withRuns<T>(mission: MissionId, work: (log: RunLog) => Promise<T>): Promise<T>;
  /** Calls `listener` when events may have been added. Returns the function to unsubscribe. */
  subscribe(listener: () => void): () => void;
}

/** Receives webhooks of another program; verifies the signature of the raw body itself. */
export interface WebhookHandler {
  receive(headers: Headers, body: Uint8Array): Promise<Readonly<Record<string, unknown>>>;
}
