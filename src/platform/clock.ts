// Time is injected (INV-9). This is the only file that may read the system clocks.

/** Wall-clock time, monotonic time and sleep. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. It can jump: never subtract two readings to measure a wait. */
  nowMs(): number;
  /** Never goes backwards. On Linux it does not advance while the host is suspended. */
  monotonicMs(): number;
  /** Resolves after `ms`, or immediately when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The maximum of setTimeout; a longer delay would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

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
        if (leftMs <= MAX_TIMER_MS) timer = setTimeout(done, leftMs);
        else timer = setTimeout(wait, MAX_TIMER_MS, leftMs - MAX_TIMER_MS);
      }
      function done() {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      }
      signal?.addEventListener("abort", done, { once: true });
    }),
};

/** Epoch seconds with millisecond precision, the format of cells and job heartbeats. */
export function epochSeconds(clock: Clock): number {
  return clock.nowMs() / 1000;
}
