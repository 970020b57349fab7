// What the loop and the tool calls of one run share: its state, its limits and its host's ports, and the two ways to
// save it.
import type { LanguageModel } from "ai";
import type { Clock } from "../../platform/clock.ts";
import { LazarusError } from "../../platform/errors.ts";
import { RunStopped } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { Agent } from "./agent.ts";
import type { RunCheckpointer, RunEvent, RunPorts, Watch } from "./ports.ts";
import type { RunState } from "./state.ts";

/** One run in progress. */
export interface RunContext {
  readonly agent: Agent;
  readonly state: RunState;
  /** Undefined for a run that is not durable. */
  readonly checkpointer: RunCheckpointer | undefined;
  readonly ports: RunPorts;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly stepTimeoutMs: number;
  readonly maxRetries: number;
  /** Messages from the watchdog, sent to the model before its next step. */
  readonly nudges: string[];
  /** Steps beyond the limit that a watchdog allowed. */
  extraSteps: number;
  /** Set once the host's `onText` has thrown. */
  textListenerFailed: boolean;
  watch: Watch | undefined;
  modelFor(tier: string | undefined): LanguageModel;
  audit(kind: RunEvent["kind"], data: Record<string, unknown>): void;
  warn(warning: string): void;
}

/** Wall-clock time in whole milliseconds, as it is stored. */
export function timeOf({ clock }: RunContext): number {
  return Math.floor(clock.nowMs());
}

/** Saves before an effect that depends on the record. Throws when the record cannot be written. */
export async function saveNow(run: RunContext): Promise<void> {
  await run.checkpointer?.save(run.state, "now");
}

/**
 * Saves a step that no effect depends on, if the throttle allows it. A failed save only warns: its content is written
 * with the next save. Throws when another process owns the record or it is gone.
 */
export async function saveThrottled(run: RunContext): Promise<void> {
  try {
    await run.checkpointer?.save(run.state, "throttled");
  } catch (error) {
    const isFatal = error instanceof LazarusError && FATAL_SAVE_ERRORS.has(error.code);
    if (isFatal || error instanceof RunStopped) throw error;
    run.warn(`a step was not saved yet: ${thrownText(error)}`);
  }
}

const FATAL_SAVE_ERRORS: ReadonlySet<string> = new Set(["RUN_OUT_OF_ORDER", "RUN_UNKNOWN"]);
