// The ports of the kernel: what a host can plug in. Every port is optional, and one that throws becomes a warning or the
// run's error, never a crash of the host. The kernel depends on these interfaces and on none of their implementations.
import type { LoadedRun } from "../log/run-log.ts";
import type { Lease, RunInfo, Usage } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";

/** Chooses where runs are recorded. */
export interface CheckpointerFactory {
  /** The store of a new run, or undefined for a run that is not durable. If it throws, the run only warns. */
  begin(info: RunInfo): Promise<RunStore | undefined> | RunStore | undefined;
  /** When true, a run that cannot be made durable is refused. */
  readonly required?: boolean;
}

/** An interrupted run that this process has claimed. */
export interface ClaimedRun {
  readonly lease: Lease;
  readonly loaded: LoadedRun;
}

/** What a watchdog may do to a run. */
export interface RunControls {
  /** Sends a message to the model before its next step. */
  nudge(text: string): void;
  kill(reason: string): void;
  raiseStepsBy(steps: number): void;
}

/** Receives the activity of one run. */
export interface Watch {
  activity(): void;
  stepDone(iterations: number): void;
  toolStarted(tool: string): void;
  toolEnded(): void;
  stop(): void;
}

/** Watches runs; returns undefined for a run it does not watch. */
export interface Watchdog {
  watch(info: RunInfo, controls: RunControls): Watch | undefined;
}

/** One event of a run, for an audit log. */
export interface RunEvent {
  readonly kind: "begin" | "resume" | "step" | "effect" | "phase" | "nudge" | "grant" | "warning" | "end";
  readonly step: number;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Records the events of runs, in order. */
export interface AuditPort {
  record(info: RunInfo, event: RunEvent): Promise<void> | void;
}

/** Limits what a caller may use. */
export interface BudgetPort {
  /** Called before every model call. A returned reason ends the run. */
  check(info: RunInfo): Promise<string | undefined> | string | undefined;
  /** Called with what a step used. */
  commit(info: RunInfo, spent: { readonly runtimeMs: number; readonly usage: Usage }): Promise<void> | void;
}

/** Everything that a host can plug in. */
export interface RunPorts {
  /** Chooses the store of each run, instead of the executor's `store`. */
  readonly checkpointer?: CheckpointerFactory | undefined;
  readonly watchdog?: Watchdog | undefined;
  readonly audit?: AuditPort | undefined;
  readonly budget?: BudgetPort | undefined;
  /** Called for every problem that does not end the run. */
  onWarning?(info: RunInfo, warning: string): void;
  /** Called with each piece of text of a streaming model. */
  onText?(info: RunInfo, text: string): void;
}
