// Schedules: which ticks are due, and the run of each. The id of a run is the name of the schedule and its tick, so that each
// tick runs once, however many hosts have the schedule. Times and decisions are pure; cron is parsed elsewhere.
import { LazarusError } from "../../platform/errors.ts";
import { isRunId } from "../model/run-id.ts";

/** What to do with ticks that were missed: nothing, the last one, or all. */
export type CatchUp = "none" | "last" | "all";

/** What to do with a tick while an earlier run of the schedule is open. */
export type Overlap = "skip" | "queue" | "cancel";

/** The ticks that are due, and the last one that is then handled. */
export interface DueTicks {
  readonly run: readonly number[];
  /** The last tick that was handled; undefined when nothing changes. */
  readonly handled: number | undefined;
  readonly missed: number;
}

/** More missed ticks than this are not counted: a schedule of seconds may have been off for a year. */
const MAX_TICKS = 10_000;
/** How late a tick may be without counting as missed. */
const LATE_MS = 60_000;

/**
 * Decides which ticks to run. `next` returns the first tick after a time. Without an earlier tick, the schedule begins now:
 * nothing is due. Pure.
 */
export function dueTicks(
  lastMs: number | undefined,
  nowMs: number,
  next: (afterMs: number) => number | undefined,
  catchUp: CatchUp,
): DueTicks {
  if (lastMs === undefined) return { run: [], handled: nowMs, missed: 0 };
  const ticks: number[] = [];
  for (
    let tick = next(lastMs);
    tick !== undefined && tick <= nowMs && ticks.length < MAX_TICKS;
    tick = next(tick)
  ) {
    ticks.push(tick);
  }
  const last = ticks.at(-1);
  if (last === undefined) return { run: [], handled: undefined, missed: 0 };
  const onTime = ticks.filter((tick) => nowMs - tick <= LATE_MS);
  const run = catchUp === "all" ? ticks : catchUp === "last" ? [last] : onTime.slice(-1);
  return { run, handled: last, missed: ticks.length - run.length };
}

/** The id of the run of a tick. */
export function tickRunId(schedule: string, tickMs: number): string {
  return `${schedule}-${new Date(tickMs).toISOString().replaceAll(/[-:.]/g, "")}`;
}

/** The queue and the thread of the runs of a schedule. */
export function scheduleQueue(schedule: string): string {
  return `schedule ${schedule}`;
}

/** Throws for a name that cannot be part of a run id. */
export function checkScheduleName(name: string): void {
  if (isRunId(tickRunId(name, 0))) return;
  throw new LazarusError("USAGE", `${JSON.stringify(name)} is not the name of a schedule`, {
    hint: "use 1 to 100 letters, digits, '_' or '-'",
  });
}
