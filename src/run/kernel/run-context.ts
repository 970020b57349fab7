// What the phases, tools and ports of one run share.
import type { LanguageModel } from "ai";
import type { Clock } from "../../platform/clock.ts";
import type { LiveRun } from "../engine/live-run.ts";
import type { Session } from "../engine/session.ts";
import type { Mailbox } from "../engine/steering.ts";
import type { RunInfo } from "../model/types.ts";
import type { Agent } from "./agent.ts";
import type { RunEvent, RunPorts, Watch } from "./ports.ts";

/** One run in progress. */
export interface RunContext {
  readonly agent: Agent;
  readonly info: RunInfo;
  readonly session: Session;
  readonly run: LiveRun;
  readonly ports: RunPorts;
  readonly clock: Clock;
  readonly stepTimeoutMs: number;
  readonly maxRetries: number;
  /** Messages for the model, delivered before its next step. */
  readonly mailbox: Mailbox;
  watch: Watch | undefined;
  modelFor(tier: string | undefined): LanguageModel;
  audit(kind: RunEvent["kind"], data: Record<string, unknown>): void;
  warn(warning: string): void;
}

/** Steps beyond the limit that a watchdog allowed, including before a resume. */
export function grantedSteps({ run }: RunContext): number {
  return run.entriesOf("grant").reduce((sum, { value }) => sum + (value as { steps: number }).steps, 0);
}
