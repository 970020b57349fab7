// When an agent counts as stalled: no activity (output, file changes, its own heartbeats) or no progress (flows, runs) for
// longer than its limit. Pure. Measured on the monotonic clock, which does not advance while the host sleeps and does not
// jump when the time is set.

export interface Signs {
  /** Any number that changes with the agent's activity; only compared for equality. */
  readonly activity: number;
  readonly progress: number;
}

export interface Clocks {
  readonly signs: Signs;
  /** Monotonic: when each sign was last seen to change. */
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

/** After the host slept, every agent gets the whole limit again. */
export function restartClocks(clocks: Clocks, monotonicMs: number): Clocks {
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
    return `no flow or run progress for ${Math.floor(idle)} s (limit ${progressSeconds} s)`;
  return undefined;
}

/** How often to check, so that a limit is not exceeded by much. */
export function stallCheckEveryMs({ stallSeconds, progressSeconds }: StallLimits): number | undefined {
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

/** A difference between the two clocks that scheduling does not explain. */
const MIN_GAP_MS = 5000;

/** How long the host slept between two readings; 0 when it did not. A clock set forward looks the same. */
export function sleptMs(before: Reading, now: Reading): number {
  const ahead = wallAheadMs(before, now);
  return ahead > MIN_GAP_MS ? ahead : 0;
}

/** Whether the wall clock was set back between two readings, which delays everything that waits for a wall-clock time. */
export function wasSetBack(before: Reading, now: Reading): boolean {
  return wallAheadMs(before, now) < -MIN_GAP_MS;
}

function wallAheadMs(before: Reading, now: Reading): number {
  return now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs);
}
