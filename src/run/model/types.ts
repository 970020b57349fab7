// The words of a run as plain data: what it is, what it said, what it did to the world. No logic and no I/O here;
// every other file of the room speaks in these terms.
import type { ModelMessage } from "ai";

/** Anything that survives `JSON.parse(JSON.stringify(value))`. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** How a run can end. */
export type EndStatus = "completed" | "failed" | "cancelled" | "timeout" | "killed";

/** What the store says about a run: `running` covers one that was interrupted, until someone resumes it. */
export type RunStatus = "running" | "needs-human" | EndStatus;

/** What `executor.run` reports: an ending, or why the run is only paused. */
export type ResultStatus = EndStatus | "shutdown" | "needs-human";

/** Who asked whom for what. Written once when the run begins. */
export interface RunInfo {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly callerId: string | null;
  readonly channelId: string | null;
  readonly guildId: string | null;
  readonly parentRunId: string | null;
  /** The first words of the input, for people who look at lists. */
  readonly prompt: string;
  readonly modelTier: string | null;
  readonly inputs: Json;
  readonly startedAtMs: number;
  readonly maxIterations: number;
}

/** One message of the transcript and where it belongs. Step 0 holds the input; step n the nth model call and its results. */
export interface TranscriptEntry {
  readonly step: number;
  /** Position of the phase that said it; 0 for a run without phases. */
  readonly phase: number;
  readonly message: ModelMessage;
}

/**
 * What a tool's owner promises about calling it again:
 * `read` changes nothing; `idempotent` may be repeated with the same effect id; `once` must never be repeated
 * without a human; `reconcile` can tell by effect id whether it happened.
 */
export type EffectClass = "read" | "idempotent" | "once" | "reconcile";

/** Where an effect stands. `started` after a crash means that nobody knows: see `verdictOnCall`. */
export type EffectState = "prepared" | "started" | "done" | "failed" | "unknown";

/** One line of the ledger: a tool call, recorded before it starts and after it ends (INV-5). */
export interface Effect {
  /** `<run>.<step>.<call>`: made by the runtime, the same after any number of resumes. The tool's idempotency key. */
  readonly id: string;
  readonly runId: string;
  readonly step: number;
  /** Position of the call within its step, from 0. */
  readonly call: number;
  /** The provider's own id of the call. */
  readonly callId: string;
  readonly tool: string;
  readonly class: EffectClass;
  readonly state: EffectState;
  /** How often it was started. */
  readonly attempts: number;
  readonly preparedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Set when the result is not in the transcript: a human's or a reconciliation's word. */
  readonly output: Json | null;
  readonly error: string | null;
  /** True when the stored input lost a secret, so that the call cannot be made again from the record. */
  readonly inputRedacted: boolean;
}

/** What a finished phase said, by position. */
export interface PhaseOutput {
  readonly position: number;
  readonly name: string;
  readonly output: string;
  /** True when the phase failed and its fallback stands in. */
  readonly fellBack: boolean;
}

/** Tokens as the provider counted them. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** An error as it is stored and revived. Identity is the code. */
export interface StoredError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
}

/** The head of a run: everything but its words. */
export interface RunHead {
  readonly runId: string;
  readonly agentId: string;
  readonly parentRunId: string | null;
  readonly status: RunStatus;
  readonly step: number;
  readonly phase: number;
  /** Messages in the transcript, those of the run it was forked from included. */
  readonly messageCount: number;
  readonly epoch: number;
  readonly owner: string | null;
  readonly leaseUntilMs: number;
  /** How often it was taken up again since its last step: each time but perhaps the last, its process died. */
  readonly deaths: number;
  readonly forkOf: string | null;
  readonly forkStep: number | null;
  readonly redactions: number;
  readonly usage: Usage;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A whole run as loaded. */
export interface RunRecord {
  readonly head: RunHead;
  readonly info: RunInfo;
  readonly transcript: readonly TranscriptEntry[];
  readonly phases: readonly PhaseOutput[];
  readonly effects: readonly Effect[];
  readonly output: string | null;
  readonly error: StoredError | null;
}

/** The right to write a run. Every write carries it and is refused once a later epoch exists (INV-4). */
export interface Lease {
  readonly runId: string;
  readonly epoch: number;
  readonly owner: string;
}
