// The seam between a run store and a database: rows of text in, rows of text out. A backend knows SQL and fencing; it
// knows nothing of JSON, secrets or keys, which the store above it handles once for all of them.
// A new database implements this and runs the conformance suite of lazarus/testing.
import type { EffectClass, EffectState, RunStatus } from "../model/types.ts";

/** The newest layout of a row's text that this code writes and understands. */
export const ROW_FORMAT = 1;

/** A run as a row: what never changes and where it stands. */
export interface RunRow {
  readonly id: string;
  readonly agentId: string;
  readonly parentRunId: string | null;
  /** `stub`: only its messages are left, for the forks that need them. */
  readonly status: RunStatus | "stub";
  readonly epoch: number;
  readonly owner: string | null;
  readonly leaseUntilMs: number;
  /** How often it was claimed since it last got on or was given back. */
  readonly deaths: number;
  readonly seq: number;
  readonly step: number;
  readonly phase: number;
  readonly info: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly forkOf: string | null;
  /** How many messages of `forkOf` belong to this run too. */
  readonly forkSeq: number;
  readonly forkStep: number | null;
  readonly redactions: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly format: number;
  readonly createdMs: number;
  readonly updatedMs: number;
}

/** One message, at its place in the transcript. */
export interface MessageRow {
  readonly seq: number;
  readonly step: number;
  readonly phase: number;
  readonly body: string;
}

/** One line of the ledger. */
export interface EffectRow {
  readonly step: number;
  readonly call: number;
  readonly callId: string;
  readonly tool: string;
  readonly class: EffectClass;
  readonly state: EffectState;
  readonly attempts: number;
  readonly preparedMs: number;
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly inputRedacted: boolean;
}

/** The output of a finished phase. */
export interface PhaseRow {
  readonly position: number;
  readonly body: string;
}

/** One owner's write: all of it in one transaction, or none. */
export interface StepWrite {
  readonly runId: string;
  readonly epoch: number;
  readonly nowMs: number;
  /** The lease lasts until then; 0 gives it back. */
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
 * `written`: durable now, be it by this call or by an earlier one whose answer was lost. `stale`: a later epoch owns
 * the run, or it ended; nothing was written. `out-of-order`: the run has other messages there; nothing was written.
 */
export type WriteVerdict = "written" | "stale" | "out-of-order" | "missing";

/** Which runs; nothing set means all. */
export interface RunQuery {
  readonly statuses?: readonly RunStatus[] | undefined;
  readonly agentId?: string | undefined;
  readonly limit?: number | undefined;
}

/** A claim: who takes the run, and from which epoch. */
export interface LeaseSwap {
  readonly runId: string;
  /** The epoch that was seen; the swap happens only if it is still the one. */
  readonly seenEpoch: number;
  readonly owner: string;
  readonly leaseUntilMs: number;
  readonly nowMs: number;
}

/** A human's word on an effect. */
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

/** A run as retention saw it: a later epoch means that it changed hands since. */
export interface SeenRun {
  readonly runId: string;
  readonly epoch: number;
}

/** What retention takes away, decided by `planPrune`; see there for why stubs exist. */
export interface PrunePlan {
  readonly remove: readonly SeenRun[];
  /** Runs that stay only for the messages that forks of them need, with how many those are. */
  readonly stub: readonly (SeenRun & { readonly keepSeq: number })[];
  /** Runs that must still load afterwards, with how many messages. */
  readonly prove: readonly { readonly runId: string; readonly seq: number }[];
}

/** What retention needs to know of a run. */
export interface LineageRow {
  readonly id: string;
  readonly status: RunStatus | "stub";
  readonly epoch: number;
  readonly seq: number;
  readonly updatedMs: number;
  readonly forkOf: string | null;
  readonly forkSeq: number;
  readonly format: number;
  readonly unknownEffects: number;
}

/** A database of runs. What a promise resolved is durable, unless `survives` is false. */
export interface RunBackend extends AsyncDisposable {
  readonly kind: "memory" | "sqlite" | "postgres";
  /** Where it keeps runs, for messages. */
  readonly place: string;
  /** Whether runs outlive the process. */
  readonly survives: boolean;
  /**
   * Enters a run with its first messages. False when the id is taken, or when the run that it is forked from is gone or
   * has become a stub: checked in the same transaction, so that no prune can come in between.
   */
  insert(row: RunRow, messages: readonly MessageRow[], phases: readonly PhaseRow[]): Promise<boolean>;
  write(write: StepWrite): Promise<WriteVerdict>;
  readRun(runId: string): Promise<RunRow | undefined>;
  /** In order, through all the runs it was forked from. */
  readMessages(runId: string): Promise<MessageRow[]>;
  readEffects(runId: string): Promise<EffectRow[]>;
  readPhases(runId: string): Promise<PhaseRow[]>;
  /** Newest first. */
  listRuns(query: RunQuery): Promise<RunRow[]>;
  /** Raises the epoch and changes the owner, if the epoch is still the one seen and the run is `running`. */
  swapLease(swap: LeaseSwap): Promise<boolean>;
  renewLease(runId: string, epoch: number, leaseUntilMs: number): Promise<boolean>;
  releaseLease(runId: string, epoch: number): Promise<boolean>;
  /** Settles an effect of a run that nobody owns; the run goes back to `running` when none is unknown any more. */
  settleEffect(change: EffectChange): Promise<boolean>;
  /**
   * Shows `decide` all runs, takes away what it says, and counts the messages of what must still load: all in one
   * transaction, into which no new fork can come, and which any throw undoes.
   */
  prune(decide: (lineage: readonly LineageRow[]) => PrunePlan): Promise<PrunePlan>;
  /** Bytes on disk, write-ahead log included; 0 when it has none. */
  sizeBytes(): Promise<number>;
}
