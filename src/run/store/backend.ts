// The interface between a run store and a database: rows of text in both directions. A backend implements SQL and
// fencing; JSON, secrets and encryption are the store's job. A new database implements this interface and runs the
// conformance suite of lazarus/testing.
import type { EffectClass, EffectState, RunStatus } from "../model/types.ts";

/** The newest row format that this code reads, and the one that it writes. */
export const ROW_FORMAT = 1;

/** A run as a row. */
export interface RunRow {
  readonly id: string;
  readonly agentId: string;
  readonly parentRunId: string | null;
  /** `stub`: a deleted run of which only messages are left, for the forks that share them. */
  readonly status: RunStatus | "stub";
  readonly epoch: number;
  readonly owner: string | null;
  readonly leaseUntilMs: number;
  /** How many times it was claimed since its last completed step or release. */
  readonly deaths: number;
  readonly seq: number;
  readonly step: number;
  readonly phase: number;
  readonly info: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly forkOf: string | null;
  /** How many messages of `forkOf` it shares. */
  readonly forkSeq: number;
  readonly forkStep: number | null;
  readonly redactions: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly format: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** One message. */
export interface MessageRow {
  readonly seq: number;
  readonly step: number;
  readonly phase: number;
  readonly body: string;
}

/** One entry of the ledger. */
export interface EffectRow {
  readonly step: number;
  readonly call: number;
  readonly callId: string;
  readonly tool: string;
  readonly class: EffectClass;
  readonly state: EffectState;
  readonly attempts: number;
  readonly preparedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly inputRedacted: boolean;
}

/** The output of a completed phase. */
export interface PhaseRow {
  readonly position: number;
  readonly body: string;
}

/** One write of a run's owner, applied in one transaction. */
export interface StepWrite {
  readonly runId: string;
  readonly epoch: number;
  readonly nowMs: number;
  /** When the lease expires; 0 releases it. */
  readonly leaseUntilMs: number;
  /** How many messages the run has before this write. */
  readonly fromSeq: number;
  readonly messages: readonly MessageRow[];
  readonly step: number;
  readonly phase: number;
  readonly effects: readonly EffectRow[];
  readonly phases: readonly PhaseRow[];
  readonly redactions: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly status: RunStatus;
  readonly output: string | null;
  readonly error: string | null;
}

/**
 * `written`: durable, by this call or by an earlier one whose reply was lost. Otherwise nothing was written. `stale`: a
 * later epoch owns the run, or it has ended. `out-of-order`: the run has other messages at this position.
 */
export type WriteVerdict = "written" | "stale" | "out-of-order" | "missing";

/** Filters for runs; default all. */
export interface RunQuery {
  readonly statuses?: readonly RunStatus[] | undefined;
  readonly agentId?: string | undefined;
  readonly limit?: number | undefined;
}

/** A claim of a run. */
export interface LeaseSwap {
  readonly runId: string;
  /** The epoch that was read; the swap succeeds only if it is still current. */
  readonly seenEpoch: number;
  readonly owner: string;
  readonly leaseUntilMs: number;
  readonly nowMs: number;
}

/** A human's decision on an effect. */
export interface EffectChange {
  readonly runId: string;
  readonly step: number;
  readonly call: number;
  readonly seenEpoch: number;
  readonly state: EffectState;
  readonly output: string | null;
  readonly error: string | null;
  readonly nowMs: number;
}

/** A run as the plan saw it; a later epoch means that it was claimed since. */
export interface SeenRun {
  readonly runId: string;
  readonly epoch: number;
}

/** What a prune removes. `planPrune` decides it and explains stubs. */
export interface PrunePlan {
  readonly remove: readonly SeenRun[];
  /** Runs to reduce to the first `keepSeq` messages, which forks of them share. */
  readonly stub: readonly (SeenRun & { readonly keepSeq: number })[];
  /** Runs that must still load after the prune, with their number of messages. */
  readonly prove: readonly { readonly runId: string; readonly seq: number }[];
}

/** What retention needs to know about a run. */
export interface LineageRow {
  readonly id: string;
  readonly status: RunStatus | "stub";
  readonly epoch: number;
  readonly seq: number;
  readonly updatedAtMs: number;
  readonly forkOf: string | null;
  readonly forkSeq: number;
  readonly format: number;
  readonly unknownEffects: number;
}

/** A database of runs. A resolved write is durable, unless `survives` is false. */
export interface RunBackend extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  /** Path or address, for messages. */
  readonly place: string;
  /** Whether runs outlive the process. */
  readonly survives: boolean;
  /**
   * Adds a run with its first messages. False when the id is taken, or when the run it is forked from is gone or a stub,
   * which is checked in the same transaction, so that no prune can interleave.
   */
  insert(row: RunRow, messages: readonly MessageRow[], phases: readonly PhaseRow[]): Promise<boolean>;
  write(write: StepWrite): Promise<WriteVerdict>;
  readRun(runId: string): Promise<RunRow | undefined>;
  /** In order, including the messages shared with its ancestors. */
  readMessages(runId: string): Promise<MessageRow[]>;
  readEffects(runId: string): Promise<EffectRow[]>;
  readPhases(runId: string): Promise<PhaseRow[]>;
  /** Newest first. */
  listRuns(query: RunQuery): Promise<RunRow[]>;
  /** Raises the epoch and changes the owner if the epoch is still `seenEpoch` and the run is `running`. */
  swapLease(swap: LeaseSwap): Promise<boolean>;
  renewLease(runId: string, epoch: number, leaseUntilMs: number): Promise<boolean>;
  releaseLease(runId: string, epoch: number): Promise<boolean>;
  /** Resolves an effect of an unowned run. The run becomes `running` again when no effect is unknown. */
  settleEffect(change: EffectChange): Promise<boolean>;
  /**
   * Passes all runs to `decide`, removes what it returns, and counts the messages of runs that must still load. All of it
   * is one transaction that excludes new forks and is rolled back on any error.
   */
  prune(decide: (lineage: readonly LineageRow[]) => PrunePlan): Promise<PrunePlan>;
  /** Bytes on disk, including the write-ahead log; 0 for memory. */
  sizeBytes(): Promise<number>;
}
