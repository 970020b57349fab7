// What a watchdog does at a moment, as a pure function of what it has seen. Two tiers: after a soft idle time it asks,
// at most once per idle period; at soft × multiplier it kills whatever was answered. Tool calls in flight are not idle.

/** What a watchdog has seen of one run. */
export interface CriticState {
  /** Monotonic time of the last sign of life. */
  readonly lastActivityMs: number;
  readonly toolsInFlight: number;
  /** Whether this idle period has had its question. */
  readonly asked: boolean;
  /** How much longer this idle period may last, by the escalator's word. */
  readonly extendedByMs: number;
  readonly killed: boolean;
}

/** When silence is asked about, and when it ends the run. */
export interface CriticLimits {
  readonly softMs: number;
  readonly hardMultiplier: number;
}

/** What to do now, and until when to wait. */
export type CriticMove =
  | { readonly move: "wait"; readonly untilMs: number }
  | { readonly move: "ask" }
  | { readonly move: "kill"; readonly idleMs: number }
  | { readonly move: "rest" };

/** `rest` means that nothing can happen before the next activity. */
export function decideMove(state: CriticState, limits: CriticLimits, nowMs: number): CriticMove {
  if (state.killed || state.toolsInFlight > 0) return { move: "rest" };
  const softAtMs = state.lastActivityMs + limits.softMs;
  const hardAtMs = state.lastActivityMs + limits.softMs * limits.hardMultiplier + state.extendedByMs;
  if (nowMs >= hardAtMs) return { move: "kill", idleMs: nowMs - state.lastActivityMs };
  if (!state.asked) return nowMs >= softAtMs ? { move: "ask" } : { move: "wait", untilMs: softAtMs };
  return { move: "wait", untilMs: hardAtMs };
}

/** What an escalator may answer. Everything is optional; an empty answer is no decision. */
export interface Escalation {
  /** Said to the model before its next step. */
  readonly nudge?: string;
  /** Milliseconds added to the hard backstop. */
  readonly extendBy?: number;
  readonly kill?: boolean;
  readonly killReason?: string;
  readonly raiseStepsBy?: number;
}

/** An answer with all that cannot be taken at its word left out. */
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
