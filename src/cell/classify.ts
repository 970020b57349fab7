// What state a cell is in: a pure function of what was seen of it. The scan does the looking.

/** The health of a cell. */
export type CellStatus = "healthy" | "stale" | "incomplete" | "uninitialized";

export interface CellSighting {
  /** Required sub-directories that are not there, or cannot be seen to be. */
  readonly missing: readonly string[];
  /** Why nothing could be seen, when the cell itself could not be read. */
  readonly unreadable?: string;
  /** The heartbeat's time in epoch seconds, or why there is none. */
  readonly heartbeat: { readonly timestamp: number } | { readonly absent: string };
}

/** The health of a cell, and the reason. */
export interface Classification {
  readonly status: CellStatus;
  /** Whole seconds, never negative; null without a heartbeat. */
  readonly ageSeconds: number | null;
  /** How far the heartbeat lies in the future; null when it does not. */
  readonly skewSeconds: number | null;
  /** Why the cell is not healthy, in words; null when it is. */
  readonly reason: string | null;
}

/** Decides the health of a cell. Pure. */
export function classifyCell(
  sighting: CellSighting,
  nowSeconds: number,
  staleAfterSeconds: number,
): Classification {
  const { missing, heartbeat, unreadable } = sighting;
  const age = "timestamp" in heartbeat ? nowSeconds - heartbeat.timestamp : null;
  const ageSeconds = age === null ? null : Math.max(0, Math.floor(age));
  const skewSeconds = age !== null && age < 0 ? Math.ceil(-age) : null;
  const base = { ageSeconds, skewSeconds };
  if (unreadable !== undefined) return { ...base, status: "incomplete", reason: unreadable };
  if (missing.length > 0) return { ...base, status: "incomplete", reason: `missing ${missing.join(", ")}` };
  if ("absent" in heartbeat)
    return { ...base, status: "uninitialized", reason: `heartbeat: ${heartbeat.absent}` };
  if (age !== null && age > staleAfterSeconds) {
    return {
      ...base,
      status: "stale",
      reason: `no heartbeat for ${ageSeconds} s (limit ${staleAfterSeconds} s)`,
    };
  }
  return { ...base, status: "healthy", reason: null };
}
