// The three clocks of a live agent. The process clock is the kernel's; activity (output, file changes, its own
// heartbeats) and progress (flows, runs) are signs whose last change is timed here. Pure. Silence is measured on the
// monotonic clock, which stands still while the host sleeps and does not jump when someone sets the time.

export interface Signs {
  /** Any number that changes when the agent does something; only compared for equality. */
  readonly activity: number;
  readonly progress: number;
}

export interface Clocks {
  readonly signs: Signs;
  /** Monotonic: when each sign last changed, as far as anyone looked. */
  readonly activeMs: number;
  readonly progressedMs: number;
}

export interface StallLimits {
  readonly stallSeconds: number | null;
  readonly progressSeconds: number | null;
}

export function startClocks(signs: Signs, monotonicMs: number): Clocks {
  return { signs, activeMs: monotonicMs, progressedMs: monotonicMs };
}

export function observe(clocks: Clocks, signs: Signs, monotonicMs: number): Clocks {
  const progressed = signs.progress !== clocks.signs.progress;
  const active = progressed || signs.activity !== clocks.signs.activity;
  return {
    signs,
    activeMs: active ? monotonicMs : clocks.activeMs,
    progressedMs: progressed ? monotonicMs : clocks.progressedMs,
  };
}

/** After the host slept everyone gets the whole limit again. */
export function regrace(clocks: Clocks, monotonicMs: number): Clocks {
  return { ...clocks, activeMs: monotonicMs, progressedMs: monotonicMs };
}

/** Why an agent counts as stalled; undefined while it does not. */
export function judgeStall(clocks: Clocks, limits: StallLimits, monotonicMs: number): string | undefined {
  const { stallSeconds, progressSeconds } = limits;
  const silent = (monotonicMs - clocks.activeMs) / 1000;
  if (stallSeconds !== null && silent > stallSeconds)
    return `no output, file change or heartbeat for ${Math.floor(silent)} s (limit ${stallSeconds} s)`;
  const idle = (monotonicMs - clocks.progressedMs) / 1000;
  if (progressSeconds !== null && idle > progressSeconds)
    return `no flow or run moved for ${Math.floor(idle)} s (limit ${progressSeconds} s)`;
  return undefined;
}

/** How often to look, so that a limit is not overrun by much. */
export function lookEveryMs({ stallSeconds, progressSeconds }: StallLimits): number | undefined {
  const limit = Math.min(
    stallSeconds ?? Number.POSITIVE_INFINITY,
    progressSeconds ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(limit) ? Math.min(5000, Math.max(250, limit * 250)) : undefined;
}

export interface Reading {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** A gap between the two clocks that no scheduler explains. */
const GAP_LEAST_MS = 5000;

/** How long the host slept between two readings; 0 when it did not. A clock set by hand looks the same, and re-graces. */
export function sleptMs(before: Reading, now: Reading): number {
  const ahead = wallAheadMs(before, now);
  return ahead > GAP_LEAST_MS ? ahead : 0;
}

/** Whether someone set the wall clock back between two readings: what was to be done at a time would come too late. */
export function wasSetBack(before: Reading, now: Reading): boolean {
  return wallAheadMs(before, now) < -GAP_LEAST_MS;
}

function wallAheadMs(before: Reading, now: Reading): number {
  return now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs);
}
