// When the next live point of a mission is due: a pure function of what changed, what the last point cost, and the limits
// that the user set (INV-10). All times are monotonic milliseconds: setting the clock changes nothing.

export interface LiveLimits {
  /** A change is saved at most this long after it was made. */
  readonly withinMs: number;
  /** A point is taken after this long without another change. */
  readonly quietMs: number;
  /** The part of the time that points may take, 0 to 1. */
  readonly share: number;
  /** The whole cell is walked this often, regardless of the watch. */
  readonly auditMs: number;
}

export interface LiveState {
  /** When the oldest change was made that no checkpoint holds; undefined: none is known. */
  readonly firstUnsavedMs: number | undefined;
  readonly lastChangeMs: number | undefined;
  /** How many changes no checkpoint holds. */
  readonly unsavedChanges: number;
  /** When the agent reported something to save immediately, such as the end of a turn; undefined: nothing, or it is saved. */
  readonly urgentMs: number | undefined;
  /** False: nothing reports changes, so the cell is examined at intervals. */
  readonly isWatched: boolean;
  /** When the last point, or the last attempt at one, ended. */
  readonly lastEndMs: number;
  readonly lastTookMs: number;
  readonly hasFailed: boolean;
  /** When the watch was last checked by walking the whole cell. */
  readonly lastAuditMs: number;
}

/** This many changes without a pause are a burst, such as `npm install`: one point at its end is enough. */
export const BURST_CHANGES = 1000;
const BURST_MS = 120_000;

/** When to take the next point. In the past: now. */
export function nextPointMs(state: LiveState, limits: LiveLimits): number {
  const { lastEndMs, lastTookMs } = state;
  const pauseMs = Math.max(lastTookMs * (1 / limits.share - 1), state.hasFailed ? limits.withinMs : 0);
  return Math.max(lastEndMs + pauseMs, wantedMs(state, limits));
}

function wantedMs(state: LiveState, limits: LiveLimits): number {
  return Math.min(
    state.lastAuditMs + limits.auditMs,
    state.urgentMs ?? Number.POSITIVE_INFINITY,
    state.isWatched ? changeMs(state, limits) : state.lastEndMs + limits.withinMs,
  );
}

function changeMs(state: LiveState, limits: LiveLimits): number {
  const { firstUnsavedMs } = state;
  if (firstUnsavedMs === undefined) return Number.POSITIVE_INFINITY;
  const isBurst = state.unsavedChanges >= BURST_CHANGES;
  const latestMs = firstUnsavedMs + (isBurst ? Math.max(limits.withinMs, BURST_MS) : limits.withinMs);
  return Math.min((state.lastChangeMs ?? firstUnsavedMs) + limits.quietMs, latestMs);
}

/** Whether the next point walks the whole cell and compares that with the watch. */
export function isAuditDue({ lastAuditMs }: LiveState, { auditMs }: LiveLimits, nowMs: number): boolean {
  return nowMs >= lastAuditMs + auditMs;
}
