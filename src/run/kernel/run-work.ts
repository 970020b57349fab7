// What the loop and the tool calls of one run share: its state, its limits and the ports of its host.
import type { LanguageModel } from "ai";
import type { Clock } from "../../platform/clock.ts";
import type { Agent } from "./agent.ts";
import type { RunEvent, RunPorts, Watch } from "./ports.ts";
import type { RunState } from "./state.ts";

/** One run being worked on: its state, its limits and its surroundings. */
export interface RunWork {
  readonly agent: Agent;
  readonly state: RunState;
  readonly ports: RunPorts;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly stepTimeoutMs: number;
  readonly maxRetries: number;
  /** Words that a watchdog wants the model to hear. */
  readonly nudges: string[];
  /** Steps beyond the limit that a watchdog allowed. */
  extraSteps: number;
  /** Set when the listener to the model's words failed. */
  deaf: boolean;
  readonly watch: Watch | undefined;
  modelFor(tier: string | undefined): LanguageModel;
  nowMs(): number;
  save(urgency: "now" | "throttled"): Promise<void>;
  audit(kind: RunEvent["kind"], data: Record<string, unknown>): void;
  warn(warning: string): void;
}
