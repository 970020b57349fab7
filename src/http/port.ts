// What the HTTP API needs from the pit, as an interface: `pit-port.ts` implements it, tests use stubs. Every function
// returns plain data or throws a LazarusError.
import type { MissionId } from "../cell/mission-id.ts";
import type { MissionView } from "../pit/view.ts";
import type { IndexedCheckpoint } from "../registry/checkpoints.ts";
import type { Event } from "../registry/registry.ts";
import type { RunLog } from "../run/log/run-log.ts";
import type { Reason } from "../snapshot/model/entry.ts";

export const MISSION_ACTIONS = ["stop", "pause", "rest", "revive", "checkpoint", "restore"] as const;
export type MissionAction = (typeof MISSION_ACTIONS)[number];

export interface HeartbeatRequest {
  readonly status?: string | undefined;
  /** The life that the caller belongs to; an earlier life is refused (INV-4). */
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
  /** For `revive`: report the decision without acting. */
  readonly dry_run?: boolean | undefined;
  /** For `checkpoint`: a note stored with it. */
  readonly message?: string | null | undefined;
  /** For `checkpoint`: why it is taken; default manual. */
  readonly reason?: Reason | undefined;
  /** For `checkpoint`: the name of the agent that is stored with it; default: that of the mission's agent. */
  readonly agent?: string | null | undefined;
  /** For `checkpoint`: a live point, if anything changed. */
  readonly live?: boolean | undefined;
  /** For `checkpoint`: refuse unless the pit knows what changed, so that it need not walk the cell. */
  readonly only_watched?: boolean | undefined;
  /** For `checkpoint`: refuse unless the pit has the same version, configuration and environment (caller.ts). */
  readonly caller?: string | undefined;
  /** For `revive`: start even if the checkpoint of the last life fails. */
  readonly without_checkpoint?: boolean | undefined;
  /** For `restore`: id, prefix of an id, `latest`, or a time. */
  readonly checkpoint?: string | undefined;
  /** For `restore`: only these paths of the cell. */
  readonly paths?: readonly string[] | undefined;
  /** For `restore`: only the files, or only the conversation. */
  readonly part?: "files" | "conversation" | undefined;
  /** For `restore`: stop a live agent first and revive it afterwards. */
  readonly stop?: boolean | undefined;
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
  /** Does something with the runs of a mission's cell. Throws RUN_UNKNOWN when it has none. */
  withRuns<T>(mission: MissionId, work: (log: RunLog) => Promise<T>): Promise<T>;
  /** Calls `listener` when events may have been added. Returns the function to unsubscribe. */
  subscribe(listener: () => void): () => void;
}

/** Receives webhooks of another program; verifies the signature of the raw body itself. */
export interface WebhookHandler {
  receive(headers: Headers, body: Uint8Array): Promise<Readonly<Record<string, unknown>>>;
}
