// What the HTTP room needs of the pit, as an interface: `pit-port.ts` makes one from a real pit, a test from a handful of
// functions. Every function either answers with plain data or throws a LazarusError.
import type { MissionId } from "../cell/mission-id.ts";
import type { MissionView } from "../pit/view.ts";
import type { IndexedCheckpoint } from "../registry/checkpoints.ts";
import type { Event } from "../registry/registry.ts";

export const MISSION_ACTIONS = ["stop", "pause", "rest", "revive", "checkpoint"] as const;
export type MissionAction = (typeof MISSION_ACTIONS)[number];

export interface HeartbeatRequest {
  readonly status?: string | undefined;
  /** The life that the caller belongs to; an earlier one than the present is refused (INV-4). */
  readonly epoch?: number | undefined;
  /** Accepted for compatibility: every heartbeat is on disk before the answer. */
  readonly durable?: boolean | undefined;
}

export interface HeartbeatAnswer {
  readonly mission_id: string;
  /** Epoch seconds, as written to the heartbeat file. */
  readonly timestamp: number;
  /** Always true: the heartbeat is on disk before the answer is sent. */
  readonly durable: boolean;
}

export interface EventPage {
  readonly mission?: string | undefined;
  readonly afterSeq?: number;
  readonly first?: number;
  readonly last?: number;
}

export interface ActionRequest {
  /** For `revive`: say what would be done. */
  readonly dry_run?: boolean | undefined;
  /** For `checkpoint`: a line that is kept with it. */
  readonly message?: string | undefined;
}

export interface PitPort {
  missions(): Promise<readonly MissionView[]>;
  mission(mission: MissionId): Promise<MissionView>;
  /** Cells by status and agents by state; cheaper than looking at every mission. */
  counts(): Promise<{ cells: Readonly<Record<string, number>>; agents: Readonly<Record<string, number>> }>;
  heartbeat(mission: MissionId, request: HeartbeatRequest): Promise<HeartbeatAnswer>;
  /** Oldest first. */
  checkpoints(mission: MissionId): Promise<readonly IndexedCheckpoint[]>;
  events(page: EventPage): readonly Event[];
  act(
    mission: MissionId,
    action: MissionAction,
    request: ActionRequest,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Calls `listener` when the event log may have grown. Returns how to stop. */
  subscribe(listener: () => void): () => void;
}

/** A door for another program's webhooks: checks who sent it by itself, from the raw body. */
export interface WebhookDoor {
  receive(headers: Headers, body: Uint8Array): Promise<Readonly<Record<string, unknown>>>;
}
