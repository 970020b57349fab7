// Decides what a watchdog does, as a pure function. Two tiers: after the soft timeout it asks, at most once per idle
// period; at soft × multiplier it kills the run regardless of the answer. A run with a tool call in flight is not idle.

/** The state of a watchdog for one run. */
export interface CriticState {
  /** Monotonic time of the last activity. */
  readonly lastActivityMs: number;
  readonly toolsInFlight: number;
  /** Whether the escalator was asked in this idle period. */
  readonly asked: boolean;
  /** How much the escalator extended this idle period. */
  readonly extendedByMs: number;
  readonly killed: boolean;
}

/** When an idle run is asked about, and when it is killed. */
export interface CriticLimits {
  readonly softMs: number;
  readonly hardMultiplier: number;
}

/** What to do now. `rest`: nothing can happen before the next activity. */
export type CriticMove =
  | { readonly move: "wait"; readonly untilMs: number }
  | { readonly move: "ask" }
  | { readonly move: "kill"; readonly idleMs: number }
  | { readonly move: "rest" };

/** Decides the next move. Pure. */
export function decideMove(state: CriticState, limits: CriticLimits, nowMs: number): CriticMove {
  if (state.killed || state.toolsInFlight > 0) return { move: "rest" };
  const softAtMs = state.lastActivityMs + limits.softMs;
  const hardAtMs = state.lastActivityMs + limits.softMs * limits.hardMultiplier + state.extendedByMs;
  if (nowMs >= hardAtMs) return { move: "kill", idleMs: nowMs - state.lastActivityMs };
  if (!state.asked) return nowMs >= softAtMs ? { move: "ask" } : { move: "wait", untilMs: softAtMs };
  return { move: "wait", untilMs: hardAtMs };
}

/** The answer of an escalator. An empty answer is no decision. */
export interface Escalation {
  /** Sent to the model before its next step. */
  readonly nudge?: string;
  /** Milliseconds added to the hard limit. */
  readonly extendBy?: number;
  readonly kill?: boolean;
  readonly killReason?: string;
  readonly raiseStepsBy?: number;
}

/** The valid parts of an answer. */
export function soundEscalation(answer: unknown, mayExtend: boolean): Escalation {
  if (typeof answer !== "object" || answer === null) return {};
  const { nudge, extendBy, kill, killReason, raiseStepsBy } = answer as Record<string, unknown>;
  return {
    ...(typeof nudge === "string" && nudge !== "" ? { nudge } : {}),
    ...(mayExtend && isPositive(extendBy) ? { extendBy } : {}),
    ...(kill === true ? { kill } : {}),
    ...(typeof killReason === "string" && killReason !== "" ? { killReason } : {}),
    ...(isPositive(raiseStepsBy) ? { raiseStepsBy } : {}),
  };
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
