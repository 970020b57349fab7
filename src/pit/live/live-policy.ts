// When the next live point of a mission is due: a pure function of what changed, what the last point cost, and the limits
// that the user set (INV-10). All times are monotonic milliseconds.

export interface LiveLimits {
  /** A change is saved at most this long after it was made. */
  readonly withinMs: number;
  /** A point is taken after this long without another change. */
  readonly quietMs: number;
  /** The part of the time that points may take, 0 to 1. */
  readonly share: number;
  /** A cell that seems unchanged is examined this often. */
  readonly auditMs: number;
}

export interface LiveState {
  /** When the oldest change was made that no checkpoint holds; undefined: none is known. */
  readonly firstUnsavedMs: number | undefined;
  readonly lastChangeMs: number | undefined;
  /** How many changes no checkpoint holds. */
  readonly unsavedChanges: number;
  /** False: nothing reports changes, so the cell is examined at intervals. */
  readonly isWatched: boolean;
  /** When the last point, or the last attempt at one, ended. */
  readonly lastEndMs: number;
  readonly lastTookMs: number;
  readonly hasFailed: boolean;
}

/** So many changes without a pause are a burst, such as an installation of packages: one point at its end suffices. */
export const BURST_CHANGES = 1000;
const BURST_MS = 120_000;

/** When to take the next point. In the past: now. */
export function nextPointMs(state: LiveState, limits: LiveLimits): number {
  const { lastEndMs, lastTookMs } = state;
  const pauseMs = Math.max(lastTookMs * (1 / limits.share - 1), state.hasFailed ? limits.withinMs : 0);
  return Math.max(lastEndMs + pauseMs, wantedMs(state, limits));
}

function wantedMs(state: LiveState, limits: LiveLimits): number {
  const { firstUnsavedMs, lastEndMs } = state;
  if (!state.isWatched) return lastEndMs + limits.withinMs;
  if (firstUnsavedMs === undefined) return lastEndMs + limits.auditMs;
  const isBurst = state.unsavedChanges >= BURST_CHANGES;
  const latestMs = firstUnsavedMs + (isBurst ? Math.max(limits.withinMs, BURST_MS) : limits.withinMs);
  return Math.min((state.lastChangeMs ?? firstUnsavedMs) + limits.quietMs, latestMs);
}
