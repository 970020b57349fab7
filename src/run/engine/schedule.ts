// Runs an agent at the ticks of a schedule. The run of a tick is enqueued before the tick is marked as handled, and its id is
// the name of the schedule and the tick: however many hosts have the schedule, and wherever one of them dies, each tick runs
// once.
import { LazarusError } from "../../platform/errors.ts";
import { OPEN } from "../journal/head.ts";
import { type RunLog, timeOf } from "../log/run-log.ts";
import { cancelRun } from "../operations/cancel.ts";
import { setQueue } from "../operations/queue.ts";
import {
  type CatchUp,
  checkScheduleName,
  dueTicks,
  type Overlap,
  scheduleQueue,
  tickRunId,
} from "../operations/schedule.ts";

/** When an agent runs. */
export interface RunSchedule {
  /** Unique in the store; part of the ids of its runs. */
  readonly name: string;
  /** When it is due next after a time; undefined: never. `nextCronTime` of lazarus/schedule parses cron expressions. */
  readonly next: (afterMs: number) => number | null | undefined;
  /** What to do with ticks that no host was up for. Default `last`. */
  readonly catchUp?: CatchUp;
  /** What to do with a tick while an earlier run is open. Default `skip`. */
  readonly overlap?: Overlap;
}

/** What was done about the ticks that were due. */
export interface TickReport {
  /** Runs that this process has enqueued. */
  readonly started: readonly string[];
  /** Ticks that another host handles. */
  readonly taken: readonly string[];
  /** Ticks that were left out because an earlier run is open. */
  readonly skipped: readonly string[];
  /** Number of ticks that were missed and are not caught up. */
  readonly missed: number;
}

/** Handles the ticks that are due. `enqueue` adds a run with an id, a queue and a thread. */
export async function runTicks(
  log: RunLog,
  { name, next, catchUp = "last", overlap = "skip" }: RunSchedule,
  enqueue: (run: { runId: string; queue: string; thread: string }) => Promise<unknown>,
): Promise<TickReport> {
  checkScheduleName(name);
  const queue = scheduleQueue(name);
  const last = await log.journal.readTick(name);
  const { run, handled, missed } = dueTicks(
    last,
    timeOf(log),
    (afterMs) => next(afterMs) ?? undefined,
    catchUp,
  );
  const report = { started: [] as string[], taken: [] as string[], skipped: [] as string[], missed };
  if (run.length > 0) await setQueue(log, queue, overlap === "queue" ? { total: 1 } : null);
  for (const tickMs of run) {
    const runId = tickRunId(name, tickMs);
    const open = await log.journal.list({ thread: queue, statuses: OPEN });
    const earlier = open.filter(({ id }) => id !== runId);
    if (overlap === "skip" && earlier.length > 0) {
      report.skipped.push(runId);
      continue;
    }
    if (overlap === "cancel") for (const { id } of earlier) await cancelRun(log, id);
    try {
      await enqueue({ runId, queue, thread: queue });
      report.started.push(runId);
    } catch (error) {
      if (!(error instanceof LazarusError) || error.code !== "RUN_ID_TAKEN") throw error;
      report.taken.push(runId);
    }
  }
  if (handled !== undefined) await log.journal.writeTick(name, handled);
  return report;
}
