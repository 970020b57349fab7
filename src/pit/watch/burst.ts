// How often the queue of events is read. It is normally read often, event by event, and less often where nothing has
// happened for a while. During a burst, such as a package installation, it is read rarely and the events are dropped:
// following a burst in detail slows down the agent that causes it (measured with `tar x`: by a factor of 1.27 to 1.65,
// against 1.11 to 1.19 when the queue overflows), and one walk saves the result anyway. Pure.

export interface Pace {
  readonly isBurst: boolean;
  readonly waitMs: number;
}

export const CALM: Pace = { isBurst: false, waitMs: 100 };
export const BURST: Pace = { isBurst: true, waitMs: 1000 };

/** After reads without events: each wakes the processor, and a pit is idle most of the time. */
const IDLE_MS = 250;
const IDLE_STEP_MS = 10;

/** This many events in one read start a burst: `tar x` makes 5 events per file, for 10,000 files a second. */
const BURST_EVENTS = 4000;
/** At most this many events in one read end a burst. */
const CALM_EVENTS = 1000;

/** The pace after a read that returned this many events. */
export function nextPace({ isBurst, waitMs }: Pace, events: number): Pace {
  if (events === 0 && !isBurst) return { isBurst, waitMs: Math.min(waitMs + IDLE_STEP_MS, IDLE_MS) };
  return events >= (isBurst ? CALM_EVENTS : BURST_EVENTS) ? BURST : CALM;
}
