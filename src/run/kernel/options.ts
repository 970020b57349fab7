// The options and the result of a run: plain types that executor, state and recovery share.
import type { LanguageModel } from "ai";
import type { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Effect, Json, ResultStatus, Usage } from "../model/types.ts";
import type { ClaimedRun, RunPorts } from "./ports.ts";

/** Limits for agents that name none. */
export interface ExecutorDefaults {
  readonly maxIterations?: number;
  /** For one model call; ten minutes unless told. */
  readonly stepTimeoutMs?: number;
  readonly timeoutMs?: number;
  /** How long a stopped run waits for an effect in flight; five seconds unless told. */
  readonly graceMs?: number;
  /** The AI SDK's own retries of a failing provider. */
  readonly maxRetries?: number;
}

/** What an executor is made of; a model is all it needs. */
export interface ExecutorOptions {
  readonly model?: LanguageModel;
  /** Models by tier, for agents that name one. */
  readonly models?: Readonly<Record<string, LanguageModel>>;
  readonly ports?: RunPorts;
  readonly defaults?: ExecutorDefaults;
  readonly machine?: Machine;
}

/** Who asks, with which limits, and whether something is resumed. */
export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
  /** A claimed run to go on with; it gets no new input. `recoverInterrupted` makes these. */
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
  /** Whether the run would have survived this process. */
  readonly durable: boolean;
  /** Effects of which nobody knows whether they happened. */
  readonly unknownEffects: readonly Effect[];
  readonly redactions: number;
  readonly warnings: readonly string[];
}
