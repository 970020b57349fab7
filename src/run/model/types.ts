// The data of a run: its info, transcript, effects and phases. Types only; every other file of the module uses them.
import type { ModelMessage } from "ai";

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** How a run can end. */
export type EndStatus = "completed" | "failed" | "cancelled" | "timeout" | "killed";

/**
 * The stored status of a run. An interrupted run stays `running` until it is resumed; a `waiting` one waits for time, a
 * message or an answer, a `queued` one for a slot.
 */
export type RunStatus = "running" | "needs-human" | "waiting" | "queued" | EndStatus;

/** The status that `executor.run` reports: how the run ended, or why it is paused. */
export type ResultStatus = EndStatus | "shutdown" | "needs-human" | "waiting";

/** Facts about a run that never change; written when it begins. */
export interface RunInfo {
  readonly runId: string;
  readonly agentId: string;
  readonly agentName: string;
  readonly callerId: string | null;
  readonly channelId: string | null;
  readonly guildId: string | null;
  readonly parentRunId: string | null;
  /** The start of the input, for lists. */
  readonly prompt: string;
  readonly modelTier: string | null;
  readonly inputs: Json;
  readonly startedAtMs: number;
  readonly maxIterations: number;
}

/** One message of the transcript. Step 0 holds the input; step n the nth model call and its tool results. */
export interface TranscriptEntry {
  readonly step: number;
  /** Position of its phase; 0 for a run without phases. */
  readonly phase: number;
  readonly message: ModelMessage;
}

/**
 * Whether a tool call may be repeated: `read` changes nothing; `idempotent` may be repeated with the same effect id;
 * `once` must never be repeated without a human; `reconcile` can tell by effect id whether it happened; `nested` does all
 * its work in steps and child runs, which are recorded separately.
 */
export type EffectClass = "read" | "idempotent" | "once" | "reconcile" | "nested";

/** The state of an effect. After a crash, the outcome of a `started` effect is unknown. */
export type EffectState = "prepared" | "started" | "done" | "failed" | "unknown";

/** One entry of the ledger: a tool call, recorded before it starts and after it ends (INV-5). */
export interface Effect {
  /** `<run>.<step>.<call>`, stable across resumes. The tool's idempotency key, unless there is a `key`. */
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
  /** How many times it was started. */
  readonly attempts: number;
  readonly preparedAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Set when the result is not in the transcript because a human or a reconciliation supplied it. */
  readonly output: Json | null;
  readonly error: string | null;
  /** True when a secret was removed from the stored input, so that the call cannot be repeated from the record. */
  readonly inputRedacted: boolean;
  /** SHA-256 of the input, while the call has no result. Not stored with the run. */
  readonly inputDigest?: string;
  /** The tool's idempotency key where the id is not unique: in a fork, or after a restore. Not stored with the run. */
  readonly key?: string;
}

/** The output of a completed phase. */
export interface PhaseOutput {
  readonly position: number;
  readonly name: string;
  readonly output: string;
  /** True when the phase failed and this is its fallback. */
  readonly fellBack: boolean;
}

/** Tokens as reported by the provider. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** An error in its stored form. */
export interface StoredError {
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
}

/** The head of a run: everything but its content. */
export interface RunHead {
  readonly runId: string;
  readonly agentId: string;
  readonly parentRunId: string | null;
  readonly status: RunStatus;
  readonly step: number;
  readonly phase: number;
  /** Messages in the transcript, including those shared with the run it was forked from. */
  readonly messageCount: number;
  readonly epoch: number;
  readonly owner: string | null;
  readonly leaseUntilMs: number;
  /** How many times it was claimed since its last completed step; usually each claim before the last ended in a crash. */
  readonly deaths: number;
  readonly forkOf: string | null;
  readonly forkStep: number | null;
  readonly redactions: number;
  readonly usage: Usage;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A whole run. */
export interface RunRecord {
  readonly head: RunHead;
  readonly info: RunInfo;
  readonly transcript: readonly TranscriptEntry[];
  readonly phases: readonly PhaseOutput[];
  readonly effects: readonly Effect[];
  readonly output: string | null;
  readonly error: StoredError | null;
}

/** A run that can be continued. `blocked` says why it cannot be continued here, if so. */
export interface InterruptedRun {
  readonly head: RunHead;
  readonly blocked: string | null;
}

/** The right to write a run. Every write carries it and is refused once a later epoch exists (INV-4). */
export interface Lease {
  readonly runId: string;
  readonly epoch: number;
  readonly owner: string;
}

/** How a record is closed: ended, parked for a human, or released for a resume. */
export type RunClosing =
  | { readonly status: EndStatus; readonly output: string | null; readonly error: StoredError | null }
  | { readonly status: "needs-human"; readonly error: StoredError }
  | { readonly status: "interrupted" };
