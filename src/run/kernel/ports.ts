// What a host can plug into the kernel. Every port is optional and every default does nothing; a port that throws
// becomes a warning or the run's error, never a crash of the host. The kernel knows these shapes and no battery.

import type { Lease, RunInfo, RunRecord, Usage } from "../model/types.ts";
import type { RunClosing } from "../store/store.ts";
import type { RunState } from "./state.ts";

/** What makes one run durable. */
export interface RunCheckpointer {
  /** `now` for what an effect depends on; `throttled` may wait for the next one. */
  save(state: RunState, urgency: "now" | "throttled"): Promise<void>;
  close(state: RunState, closing: RunClosing): Promise<void>;
  /** Aborts when another owner took the run. */
  readonly lost: AbortSignal;
  /** Secrets taken out so far, those before a resume included. */
  readonly redactions: number;
  /** Stops keeping the lease alive. */
  stop(): void;
}

/** Makes a run durable. */
export interface CheckpointerFactory {
  /** A checkpointer for a new run, or nothing for one that is not durable. An error warns and degrades. */
  begin(info: RunInfo, state: RunState): Promise<RunCheckpointer | undefined>;
  /** Goes on with the same record. */
  resume(claimed: ClaimedRun, state: RunState): Promise<RunCheckpointer>;
  /** True when a run that cannot be made durable must not run at all. */
  readonly required?: boolean;
}

/** A run that was interrupted and is now ours. */
export interface ClaimedRun {
  readonly lease: Lease;
  readonly record: RunRecord;
}

/** What a watchdog may do to a run. */
export interface RunControls {
  /** Says something to the model before its next step. */
  nudge(text: string): void;
  kill(reason: string): void;
  raiseStepsBy(steps: number): void;
}

/** A watchdog's view of one run. */
export interface Watch {
  activity(): void;
  stepDone(iterations: number): void;
  toolStarted(tool: string): void;
  toolEnded(): void;
  stop(): void;
}

/** Watches runs; undefined for one that it does not care about. */
export interface Watchdog {
  watch(info: RunInfo, controls: RunControls): Watch | undefined;
}

/** What happened in a run, in order; for an audit log. */
export interface RunEvent {
  readonly kind: "begin" | "resume" | "step" | "effect" | "phase" | "nudge" | "warning" | "end";
  readonly step: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Writes down what runs do. */
export interface AuditPort {
  record(info: RunInfo, event: RunEvent): Promise<void> | void;
}

/** Says whether a caller may go on, and counts what was used. */
export interface BudgetPort {
  /** Asked before every model call. A reason ends the run. */
  check(info: RunInfo): Promise<string | undefined> | string | undefined;
  /** Told what a step took. */
  commit(info: RunInfo, spent: { readonly runtimeMs: number; readonly usage: Usage }): Promise<void> | void;
}

/** Everything that a host can plug in; all of it optional. */
export interface RunPorts {
  readonly checkpointer?: CheckpointerFactory | undefined;
  readonly watchdog?: Watchdog | undefined;
  readonly audit?: AuditPort | undefined;
  readonly budget?: BudgetPort | undefined;
  /** Told what went wrong without ending the run. */
  onWarning?(info: RunInfo, warning: string): void;
  /** Told each piece of text as a streaming model says it. */
  onText?(info: RunInfo, text: string): void;
}
