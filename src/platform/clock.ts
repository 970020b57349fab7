// Time is handed in (INV-9). This is the only file that may read the machine's clocks.

/** Wall-clock time, monotonic time and sleep. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. It can jump: never subtract two readings to measure a wait. */
  nowMs(): number;
  /** A clock that only moves forward and stands still while the host sleeps (on Linux). */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** What setTimeout can hold; more would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clock of this machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      let timer: NodeJS.Timeout;
      wait(ms);
      function wait(leftMs: number) {
        if (leftMs <= LONGEST_TIMER_MS) timer = setTimeout(done, leftMs);
        else timer = setTimeout(wait, LONGEST_TIMER_MS, leftMs - LONGEST_TIMER_MS);
      }
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
      signal?.addEventListener("abort", done, { once: true });
    }),
};

/** Epoch seconds with millisecond precision: how cells and job heartbeats write time. */
export function epochSeconds(clock: Clock): number {
  return clock.nowMs() / 1000;
}
