// The watchdog of runs: a port of the kernel that notices silence. It sleeps on the injected clock, asks its escalator,
// and passes the answer on. A throwing escalator counts as no decision; a kill is sticky. Nothing set, no watchdog.
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { RunControls, Watch, Watchdog } from "../kernel/ports.ts";
import type { RunInfo } from "../model/types.ts";
import { type CriticState, decideMove, type Escalation, soundEscalation } from "./decide.ts";

/** What an escalator is told about a run that has fallen silent. */
export interface CriticProgress {
  readonly iterations: number;
  /** Wall clock of the last sign of life. */
  readonly lastActivity: number;
  readonly idleMs: number;
  readonly lastTool: string | null;
}

/** How a watchdog watches. */
export interface CriticOptions {
  /** Silence after which the escalator is asked. Nothing set, no watchdog. */
  readonly softTimeoutMs?: number;
  /** The backstop is soft × this; 3 unless told, and never below 1. */
  readonly hardMultiplier?: number;
  onSoftTimeout?(
    info: RunInfo,
    progress: CriticProgress,
  ): Promise<Escalation | undefined> | Escalation | undefined;
  /** Whether `extendBy` counts only the first time in a run; yes unless told. */
  readonly extendOnce?: boolean;
  readonly clock?: Clock;
}

const DEFAULT_MULTIPLIER = 3;

/** A watchdog for an executor's ports, or undefined when no timeout is set. */
export function createCritic(options: CriticOptions): Watchdog | undefined {
  const { softTimeoutMs: softMs } = options;
  if (softMs === undefined || !(softMs > 0)) return undefined;
  const clock = options.clock ?? systemClock;
  const { hardMultiplier = DEFAULT_MULTIPLIER } = options;
  // The backstop kills in any case: a multiplier that is no number must not leave it out.
  const limits = {
    softMs,
    hardMultiplier: Number.isFinite(hardMultiplier) ? Math.max(1, hardMultiplier) : DEFAULT_MULTIPLIER,
  };
  return { watch: (info, controls) => watchRun(info, controls, options, limits, clock) };
}

function watchRun(
  info: RunInfo,
  controls: RunControls,
  options: CriticOptions,
  limits: { softMs: number; hardMultiplier: number },
  clock: Clock,
): Watch {
  let state: CriticState = {
    lastActivityMs: clock.monotonicMs(),
    toolsInFlight: 0,
    asked: false,
    extendedByMs: 0,
    killed: false,
  };
  let iterations = 0;
  let lastTool: string | null = null;
  let extended = false;
  /** Counts idle periods: an answer that comes after the run woke up is too late to be about it. */
  let period = 0;
  const stopped = new AbortController();
  let nap = new AbortController();

  const activity = (change: Partial<CriticState> = {}) => {
    state = { ...state, lastActivityMs: clock.monotonicMs(), asked: false, extendedByMs: 0, ...change };
    period += 1;
    nap.abort();
  };
  const kill = (reason: string) => {
    if (state.killed) return;
    state = { ...state, killed: true };
    controls.kill(reason);
  };
  const ask = async () => {
    state = { ...state, asked: true };
    const askedIn = period;
    const idleMs = clock.monotonicMs() - state.lastActivityMs;
    const progress = { iterations, lastActivity: clock.nowMs() - idleMs, idleMs, lastTool };
    let answer: unknown;
    try {
      answer = await options.onSoftTimeout?.(info, progress);
    } catch {
      return;
    }
    const {
      nudge,
      extendBy,
      kill: mustDie,
      killReason,
      raiseStepsBy,
    } = soundEscalation(answer, !(extended && (options.extendOnce ?? true)));
    if (mustDie)
      return kill(killReason ?? `the escalator ended it after ${Math.round(idleMs)} ms of silence`);
    if (nudge !== undefined) controls.nudge(nudge);
    if (raiseStepsBy !== undefined) controls.raiseStepsBy(raiseStepsBy);
    if (extendBy !== undefined && askedIn === period) {
      extended = true;
      state = { ...state, extendedByMs: state.extendedByMs + extendBy };
      nap.abort();
    }
  };
  const loop = async () => {
    while (!stopped.signal.aborted && !state.killed) {
      const move = decideMove(state, limits, clock.monotonicMs());
      if (move.move === "kill") {
        kill(`it was silent for ${Math.round(move.idleMs)} ms, past its hard limit`);
      } else if (move.move === "ask") {
        // Not awaited: an escalator that never answers must not hold the backstop.
        void ask();
      } else {
        nap = new AbortController();
        const untilMs = move.move === "rest" ? Number.POSITIVE_INFINITY : move.untilMs - clock.monotonicMs();
        await sleepUntil(clock, untilMs, AbortSignal.any([nap.signal, stopped.signal]));
      }
    }
  };
  void loop();

  return {
    activity: () => activity(),
    stepDone(count) {
      iterations = count;
      activity();
    },
    toolStarted(tool) {
      lastTool = tool;
      activity({ toolsInFlight: state.toolsInFlight + 1 });
    },
    toolEnded: () => activity({ toolsInFlight: Math.max(0, state.toolsInFlight - 1) }),
    stop: () => stopped.abort(),
  };
}

function sleepUntil(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (Number.isFinite(ms)) return clock.sleep(ms, signal);
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
