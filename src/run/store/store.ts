// The contract of a run store. `createRunStore` implements it on any backend; the conformance suite in `lazarus/testing`
// checks it for every database.

import type { RunLog } from "../log/run-log.ts";
import type {
  Effect,
  InterruptedRun,
  Json,
  Lease,
  PhaseOutput,
  PruneReport,
  RunClosing,
  RunHead,
  RunInfo,
  RunRecord,
  RunStatus,
  TranscriptEntry,
  Usage,
} from "../model/types.ts";
import type { RetentionPolicy } from "./retention.ts";

export type { InterruptedRun, PruneReport, RunClosing };

/** What one save adds, atomically. */
export interface RunChange {
  /** How many messages the store already has; `messages` are appended there. */
  readonly fromCount: number;
  readonly messages: readonly TranscriptEntry[];
  readonly step: number;
  readonly phase: number;
  /** Ledger entries that are new or changed. */
  readonly effects?: readonly Effect[];
  readonly phases?: readonly PhaseOutput[];
  readonly usage: Usage;
}

/** What a save redacted. */
export interface SaveReceipt {
  /** Number of secrets removed from this change. */
  readonly redactions: number;
  /** Ids of effects whose stored input was redacted. */
  readonly redactedInputs: readonly string[];
}

/** The lease of a new run. */
export interface BeginReceipt extends Lease {
  /** Number of secrets removed from its input and info. */
  readonly redactions: number;
}

/** A human's decision on an effect whose outcome is unknown. */
export type EffectResolution =
  | { readonly outcome: "done"; readonly output?: Json }
  | { readonly outcome: "retry" }
  | { readonly outcome: "fail"; readonly reason?: string };

/** Which runs to list, newest first; default all. */
export interface ListQuery {
  readonly statuses?: readonly RunStatus[];
  readonly agentId?: string;
  readonly limit?: number;
}

/**
 * A store of runs. Every store guarantees:
 * - a resolved write is durable, unless `survives` is false (INV-1);
 * - a write with a stale lease throws RUN_STALE_LEASE and changes nothing (INV-4);
 * - saves only append; a save that is repeated because its reply was lost is applied once;
 * - a record of a newer format throws RUN_NEWER when it is read, and is never written.
 */
export interface RunStore extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  readonly place: string;
  /** False for the memory store, whose runs end with the process. */
  readonly survives: boolean;
  /** Duration of a lease; its owner renews it after a third of that. */
  readonly leaseMs: number;
  /** The runs of durable agents in the same place. */
  readonly log: RunLog;
  /** Adds a run, owned by this process. Throws RUN_ID_TAKEN. */
  begin(info: RunInfo, messages: readonly TranscriptEntry[]): Promise<BeginReceipt>;
  save(lease: Lease, change: RunChange): Promise<SaveReceipt>;
  /** Saves a last time and releases the lease. */
  close(lease: Lease, change: RunChange, closing: RunClosing): Promise<SaveReceipt>;
  /** The whole run, or undefined. */
  load(runId: string): Promise<RunRecord | undefined>;
  /** Only the head: cheap, and readable without the encryption key. */
  head(runId: string): Promise<RunHead | undefined>;
  list(query?: ListQuery): Promise<RunHead[]>;
  /** The ledger of one run, in the order of its calls. */
  effects(runId: string): Promise<Effect[]>;
  /** An effect that has not ended, as the effect history of the mission knows it. Absent in stores without one. */
  recall?(effect: Effect): Promise<Effect>;
  /** The stored transcript, from message `fromCount` on. */
  history(runId: string, fromCount?: number): Promise<TranscriptEntry[]>;
  /** Runs whose owner is gone, oldest first. */
  listInterrupted(): Promise<InterruptedRun[]>;
  /** Claims an unowned run; undefined when another process owns it or it has ended. */
  claim(runId: string): Promise<Lease | undefined>;
  /** Renews the lease. False when it is lost. */
  renew(lease: Lease): Promise<boolean>;
  release(lease: Lease): Promise<void>;
  /** Resolves an effect whose outcome is unknown. A parked run can be resumed once none is unknown. */
  resolve(effectId: string, resolution: EffectResolution): Promise<Effect>;
  /** Adds an interrupted run that shares the first `step` steps of another, which stays unchanged. */
  fork(runId: string, step: number): Promise<RunHead>;
  /** Removes a run except for messages that forks share; false when there is none. Throws RUN_BUSY while it is owned. */
  delete(runId: string): Promise<boolean>;
  /** Removes ended runs by policy; checks in the same transaction that every kept run still loads. */
  prune(policy: RetentionPolicy): Promise<PruneReport>;
  sizeBytes(): Promise<number>;
}
