// The contract of a run store, and nothing else: what every database must promise. `createRunStore` puts it on a
// backend; `lazarus/testing` has the suite that holds all of them to it.

import type {
  Effect,
  EndStatus,
  Json,
  Lease,
  PhaseOutput,
  RunHead,
  RunInfo,
  RunRecord,
  RunStatus,
  StoredError,
  TranscriptEntry,
  Usage,
} from "../model/types.ts";
import type { RetentionPolicy } from "./retention.ts";

/** What one save adds. Everything in it becomes durable together, or none of it. */
export interface RunChange {
  /** How many messages the store already has: the place where `messages` go. */
  readonly fromCount: number;
  readonly messages: readonly TranscriptEntry[];
  readonly step: number;
  readonly phase: number;
  /** Ledger lines that are new or have moved on. */
  readonly effects?: readonly Effect[];
  readonly phases?: readonly PhaseOutput[];
  readonly usage: Usage;
}

/** How the record is left: ended, parked for a human, or given back for whoever resumes it. */
export type RunClosing =
  | { readonly status: EndStatus; readonly output: string | null; readonly error: StoredError | null }
  | { readonly status: "needs-human"; readonly error: StoredError }
  | { readonly status: "interrupted" };

/** What a save did on the way in. */
export interface SaveReceipt {
  /** Secrets that were taken out of what was just written. */
  readonly redactions: number;
  /** Effects whose stored input lost a secret. */
  readonly redactedInputs: readonly string[];
}

/** The lease of a new run. */
export interface BeginReceipt extends Lease {
  /** Secrets that were taken out of its input and info. */
  readonly redactions: number;
}

/** A human's word on an effect whose outcome is unknown. */
export type EffectResolution =
  | { readonly outcome: "done"; readonly output?: Json }
  | { readonly outcome: "retry" }
  | { readonly outcome: "fail"; readonly reason?: string };

/** A run that nobody works on any more. `blocked` says why it cannot be resumed here. */
export interface InterruptedRun {
  readonly head: RunHead;
  readonly blocked: string | null;
}

/** What was taken away. */
export interface PruneReport {
  readonly removed: readonly string[];
  /** Runs whose messages stay for the sake of forks. */
  readonly stubs: readonly string[];
  readonly freedMessages: boolean;
}

/** Which runs to list; nothing set means all, newest first. */
export interface ListQuery {
  readonly statuses?: readonly RunStatus[];
  readonly agentId?: string;
  readonly limit?: number;
}

/**
 * Where runs are kept. Rules that hold for every store:
 * - what a promise resolved is durable, unless `survives` is false (INV-1);
 * - a write with a lease that is no longer the newest throws RUN_STALE_LEASE and changes nothing (INV-4);
 * - saves only append; a save that is repeated because its answer was lost counts once;
 * - a record that is newer than this code throws RUN_NEWER when it is read, and is never written to.
 */
export interface RunStore extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  readonly place: string;
  /** False for the memory store: what it holds ends with the process. */
  readonly survives: boolean;
  /** How long a lease lasts; whoever holds one renews it in a third of that. */
  readonly leaseMs: number;
  /** Enters a run, owned by this process. Throws RUN_ID_TAKEN. */
  begin(info: RunInfo, messages: readonly TranscriptEntry[]): Promise<BeginReceipt>;
  save(lease: Lease, change: RunChange): Promise<SaveReceipt>;
  /** The last save of a run, and its lease ends. */
  close(lease: Lease, change: RunChange, closing: RunClosing): Promise<SaveReceipt>;
  /** The whole run, or undefined. */
  load(runId: string): Promise<RunRecord | undefined>;
  /** The head alone: cheap, and readable even without the encryption key. */
  head(runId: string): Promise<RunHead | undefined>;
  list(query?: ListQuery): Promise<RunHead[]>;
  /** The ledger of one run, in the order of its calls. */
  effects(runId: string): Promise<Effect[]>;
  /** Transcript as stored, from message `fromCount` on. */
  history(runId: string, fromCount?: number): Promise<TranscriptEntry[]>;
  /** Runs whose owner is gone, oldest first. */
  listInterrupted(): Promise<InterruptedRun[]>;
  /** Takes over a run that nobody owns; undefined when someone else has it or it has ended. */
  claim(runId: string): Promise<Lease | undefined>;
  /** Prolongs the lease. False when it is lost. */
  renew(lease: Lease): Promise<boolean>;
  release(lease: Lease): Promise<void>;
  /** Settles an effect whose outcome is unknown; a parked run without open questions can be resumed again. */
  resolve(effectId: string, resolution: EffectResolution): Promise<Effect>;
  /** A new interrupted run that shares the first `step` steps of another. The other is not touched. */
  fork(runId: string, step: number): Promise<RunHead>;
  /** Removes a run. False when there was none. Messages that forks need stay. Throws RUN_BUSY while it is owned. */
  delete(runId: string): Promise<boolean>;
  /** Removes ended runs by policy, after proving in the same transaction that every kept run still loads. */
  prune(policy: RetentionPolicy): Promise<PruneReport>;
  sizeBytes(): Promise<number>;
}
