// A clock that moves only when a test says so (INV-9). Wall clock and monotonic clock move together in `advance`;
// `jumpWallClock` moves the wall clock alone, as NTP or a person does. Never looks at the machine's own time.
import type { Clock } from "../platform/clock.ts";

/** A clock that a test advances. */
export interface SimulatedClock extends Clock {
  /**
   * Moves time forward by `ms`. Sleepers wake in the order of their deadlines, each at its own moment, and what
   * they do next runs before the following one wakes: a loop that sleeps again is woken again within one call.
   */
  advance(ms: number): Promise<void>;
  /** Moves only the wall clock, forward or back. Nobody wakes: sleeping is monotonic. */
  jumpWallClock(ms: number): void;
  /** How many sleepers are waiting. */
  readonly sleepers: number;
}

interface Sleeper {
  readonly wakeAtMs: number;
  wake(): void;
}

/** 2026-11-15T23:53:01Z, as good a moment as any. */
export const SIMULATED_START_MS = Date.UTC(2026, 10, 15, 23, 53, 1);

/** Creates a clock that stands still until a test advances it. */
export function createSimulatedClock(startMs: number = SIMULATED_START_MS): SimulatedClock {
  let wallOffsetMs = startMs;
  let elapsedMs = 0;
  // Kept in order of deadline; equals stay in the order in which they fell asleep.
  const sleepers: Sleeper[] = [];

  return {
    nowMs: () => wallOffsetMs + elapsedMs,
    monotonicMs: () => elapsedMs,
    sleep(ms, signal) {
      if (!(ms > 0) || signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const sleeper: Sleeper = {
          wakeAtMs: elapsedMs + ms,
          wake() {
            sleepers.splice(sleepers.indexOf(sleeper), 1);
            signal?.removeEventListener("abort", sleeper.wake);
            resolve();
          },
        };
        const later = sleepers.findIndex((other) => other.wakeAtMs > sleeper.wakeAtMs);
        sleepers.splice(later === -1 ? sleepers.length : later, 0, sleeper);
        signal?.addEventListener("abort", sleeper.wake, { once: true });
      });
    },
    async advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`time does not go back: advance(${ms})`);
      const target = elapsedMs + ms;
      await settle();
      for (;;) {
        const next = sleepers[0];
        if (next === undefined || next.wakeAtMs > target) break;
        elapsedMs = next.wakeAtMs;
        next.wake();
        await settle();
      }
      elapsedMs = target;
    },
    jumpWallClock(ms) {
      wallOffsetMs += ms;
    },
    get sleepers() {
      return sleepers.length;
    },
  };
}

/** Lets every promise that is ready run, so that code under test falls asleep again before time moves on. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
