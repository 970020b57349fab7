// The watchdog of runs: a port of the kernel that detects idle runs. It sleeps on the injected clock, asks its escalator,
// and applies the answer. An escalator that throws counts as no decision; a kill is final.
import { type Clock, systemClock } from "../../platform/clock.ts";
import type { RunControls, Watch, Watchdog } from "../kernel/ports.ts";
import type { RunInfo } from "../model/types.ts";
import { type CriticState, decideMove, type Escalation, soundEscalation } from "./decide.ts";

/** What an escalator receives about an idle run. */
export interface CriticProgress {
  readonly iterations: number;
  /** Wall-clock time of the last activity, in milliseconds. */
  readonly lastActivity: number;
  readonly idleMs: number;
  readonly lastTool: string | null;
}

/** Timeouts and escalator of a watchdog. */
export interface CriticOptions {
  /** Idle time after which the escalator is asked. Without it there is no watchdog. */
  readonly softTimeoutMs?: number;
  /** The run is killed after the soft timeout × this, default 3, at least 1. */
  readonly hardMultiplier?: number;
  onSoftTimeout?(
    info: RunInfo,
    progress: CriticProgress,
  ): Promise<Escalation | undefined> | Escalation | undefined;
  /** Whether a run can be extended only once, default true. */
  readonly extendOnce?: boolean;
  readonly clock?: Clock;
}

const DEFAULT_MULTIPLIER = 3;

/** Creates a watchdog port; undefined when no timeout is set. */
export function createCritic(options: CriticOptions): Watchdog | undefined {
  const { softTimeoutMs: softMs } = options;
  if (softMs === undefined || !(softMs > 0)) return undefined;
  const clock = options.clock ?? systemClock;
  const { hardMultiplier = DEFAULT_MULTIPLIER } = options;
  // An invalid multiplier must not disable the hard limit.
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
  /** Counts idle periods, to ignore an extension that arrives after the run became active again. */
  let period = 0;
  const stopped = new AbortController();
  let wakeUp = new AbortController();

  const activity = (change: Partial<CriticState> = {}) => {
    state = { ...state, lastActivityMs: clock.monotonicMs(), asked: false, extendedByMs: 0, ...change };
    period += 1;
    wakeUp.abort();
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
      kill: mustKill,
      killReason,
      raiseStepsBy,
    } = soundEscalation(answer, !(extended && (options.extendOnce ?? true)));
    if (mustKill)
      return kill(killReason ?? `killed by the escalator after ${Math.round(idleMs)} ms without activity`);
    if (nudge !== undefined) controls.nudge(nudge);
    if (raiseStepsBy !== undefined) controls.raiseStepsBy(raiseStepsBy);
    if (extendBy !== undefined && askedIn === period) {
      extended = true;
      state = { ...state, extendedByMs: state.extendedByMs + extendBy };
      wakeUp.abort();
    }
  };
  const loop = async () => {
    while (!stopped.signal.aborted && !state.killed) {
      const move = decideMove(state, limits, clock.monotonicMs());
      if (move.move === "kill") {
        kill(`no activity for ${Math.round(move.idleMs)} ms, past the hard limit`);
      } else if (move.move === "ask") {
        // Not awaited: an escalator that never answers must not delay the hard limit.
        void ask();
      } else {
        wakeUp = new AbortController();
        const untilMs = move.move === "rest" ? Number.POSITIVE_INFINITY : move.untilMs - clock.monotonicMs();
        await sleepUntil(clock, untilMs, AbortSignal.any([wakeUp.signal, stopped.signal]));
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
