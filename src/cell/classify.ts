// The status of a cell: a pure function of what the scan observed.

/** In the order of the report's summary. */
export const CELL_STATUSES = ["healthy", "stale", "inactive", "incomplete", "uninitialized"] as const;

/** The health of a cell. */
export type CellStatus = (typeof CELL_STATUSES)[number];

export interface CellObservation {
  /** Required subdirectories that are missing or cannot be read. */
  readonly missing: readonly string[];
  /** Why the cell could not be read, if so. */
  readonly unreadable?: string;
  /** The heartbeat's time in epoch seconds, or why there is none. */
  readonly heartbeat: { readonly timestamp: number } | { readonly absent: string };
  /** Why no heartbeat is expected: the agent has finished, or a person stopped it. */
  readonly inactive?: string | undefined;
}

/** The health of a cell, and the reason. */
export interface Classification {
  readonly status: CellStatus;
  /** Whole seconds, never negative; null without a heartbeat. */
  readonly ageSeconds: number | null;
  /** How far the heartbeat is in the future; null when it is not. */
  readonly skewSeconds: number | null;
  /** Why the cell is not healthy; null when it is. */
  readonly reason: string | null;
}

/** Decides the health of a cell. Pure. */
export function classifyCell(
  observation: CellObservation,
  nowSeconds: number,
  staleAfterSeconds: number,
): Classification {
  const { missing, heartbeat, unreadable, inactive } = observation;
  const age = "timestamp" in heartbeat ? nowSeconds - heartbeat.timestamp : null;
  const ageSeconds = age === null ? null : Math.max(0, Math.floor(age));
  const skewSeconds = age !== null && age < 0 ? Math.ceil(-age) : null;
  const base = { ageSeconds, skewSeconds };
  if (unreadable !== undefined) return { ...base, status: "incomplete", reason: unreadable };
  if (missing.length > 0) return { ...base, status: "incomplete", reason: `missing ${missing.join(", ")}` };
  if ("absent" in heartbeat)
    return { ...base, status: "uninitialized", reason: `heartbeat: ${heartbeat.absent}` };
  if (age !== null && age > staleAfterSeconds) {
    if (inactive !== undefined) return { ...base, status: "inactive", reason: inactive };
    return {
      ...base,
      status: "stale",
      reason: `no heartbeat for ${ageSeconds} s (limit ${staleAfterSeconds} s)`,
    };
  }
  return { ...base, status: "healthy", reason: null };
}
