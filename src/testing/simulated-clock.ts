// A clock that a test advances (INV-9). `advance` moves wall clock and monotonic clock together; `jumpWallClock` moves only
// the wall clock, as NTP or an administrator does. Never reads the machine's time.
import type { Clock } from "../platform/clock.ts";

/** A clock that a test advances. */
export interface SimulatedClock extends Clock {
  /**
   * Moves time forward by `ms`. Sleepers wake in the order of their deadlines, each at its own time, and run before the
   * next one wakes: a loop that sleeps again is woken again within one call.
   */
  advance(ms: number): Promise<void>;
  /** Moves only the wall clock, forward or back. Wakes no sleeper: sleeps are monotonic. */
  jumpWallClock(ms: number): void;
  /** How many sleepers are waiting. */
  readonly sleepers: number;
}

interface Sleeper {
  readonly wakeAtMs: number;
  wake(): void;
}

/** 2026-11-15T23:53:01Z, an arbitrary time. */
export const SIMULATED_START_MS = Date.UTC(2026, 10, 15, 23, 53, 1);

/** Creates a clock that stands still until a test advances it. */
export function createSimulatedClock(startMs: number = SIMULATED_START_MS): SimulatedClock {
  let wallOffsetMs = startMs;
  let elapsedMs = 0;
  // Sorted by deadline; equal deadlines in the order of their sleeps.
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
      if (!(ms >= 0)) throw new RangeError(`cannot advance by ${ms} ms: time does not go back`);
      const target = elapsedMs + ms;
      await flushPromises();
      for (;;) {
        const next = sleepers[0];
        if (next === undefined || next.wakeAtMs > target) break;
        elapsedMs = next.wakeAtMs;
        next.wake();
        await flushPromises();
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

/** Runs all pending promise callbacks, so that code under test sleeps again before time advances. */
function flushPromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
