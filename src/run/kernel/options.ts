// Options and result of a run: plain types shared by the executor, new runs and recovery.
import type { LanguageModel } from "ai";
import type { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Effect, Json, ResultStatus, Usage } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import type { ClaimedRun, RunPorts } from "./ports.ts";

/** Limits for agents that set none. */
export interface ExecutorDefaults {
  readonly maxIterations?: number;
  /** Timeout of one model call, default 600000. */
  readonly stepTimeoutMs?: number;
  readonly timeoutMs?: number;
  /** How long a stopped run waits for an effect in flight, default 5000. */
  readonly graceMs?: number;
  /** Retries of a failing provider by the AI SDK, default 2. */
  readonly maxRetries?: number;
}

/** How often a run is saved, and what happens when it cannot be. */
export interface CheckpointOptions {
  /** Minimum time between writes that no effect depends on, default 0: every step is written. */
  readonly throttleMs?: number;
  /** Refuse to run what cannot be made durable, instead of continuing with a warning. Default false. */
  readonly required?: boolean;
}

/** What an executor needs; everything but a model is optional. */
export interface ExecutorOptions {
  readonly model?: LanguageModel;
  /** Models by tier, for agents that name one. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  /** Makes runs durable, and is where `recoverInterrupted` looks for them. Without it, runs are kept in memory. */
  readonly store?: RunStore;
  readonly checkpoint?: CheckpointOptions;
  readonly ports?: RunPorts;
  readonly defaults?: ExecutorDefaults;
  readonly machine?: Machine;
}

/** What all runs of one executor share. */
export interface Setup extends ExecutorOptions {
  readonly machine: Machine;
  readonly graceMs: number;
  readonly shutdown: AbortSignal;
}

/** The caller, its limits, and the run to resume, if any. */
export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
  /** A claimed run to continue, without new input. `resumeRun` and `recoverInterrupted` pass it. */
  readonly resume?: ClaimedRun;
  readonly runId?: string;
  readonly callerId?: string;
  readonly channelId?: string;
  readonly guildId?: string;
  readonly parentRunId?: string;
  readonly modelTier?: string;
  readonly inputs?: Json;
  readonly maxIterations?: number;
}

/** How a run ended, or how far it got. */
export interface RunResult {
  readonly runId: string;
  readonly status: ResultStatus;
  readonly output: string | null;
  readonly steps: number;
  readonly usage: Usage;
  readonly error: LazarusError | null;
  /** Whether the run was recorded in a store. */
  readonly durable: boolean;
  /** Effects whose outcome is unknown. */
  readonly unknownEffects: readonly Effect[];
  /** Number of secrets removed from the record. */
  readonly redactions: number;
  readonly warnings: readonly string[];
}
