// A runner of due jobs. Job storage, time computation and clock are injected. The next time is computed before the run,
// so that an invalid expression skips its job; a failed run leaves its job due; a job that throws does not stop the
// others. Only a failing `due()` ends the pass.
import { type Clock, systemClock } from "../../platform/clock.ts";

/** Where jobs come from, and how to run one. */
export interface ScheduleOptions<Job> {
  /** The jobs that are due at `nowMs`. */
  due(nowMs: number): Promise<readonly Job[]> | readonly Job[];
  run(job: Job): Promise<unknown> | unknown;
  /** Records that the job ran and when it is due next; null when never. */
  mark(job: Job, nextMs: number | null): Promise<void> | void;
  /** When the job is due next after `nowMs`; null when never. Throws for an invalid expression. */
  next(job: Job, nowMs: number): Promise<number | null> | number | null;
  onWarning?(warning: string, job: Job | undefined): void;
  readonly clock?: Clock;
  /** Pause between passes of `loop`, default 60000. */
  readonly intervalMs?: number;
}

/** What one pass did. */
export interface PassReport<Job> {
  readonly ran: readonly Job[];
  /** Left due: the run threw, or it could not be marked. */
  readonly failed: readonly Job[];
  /** Not run: its next time could not be computed. */
  readonly skipped: readonly Job[];
}

/** Runs what is due. */
export interface ScheduleRunner<Job> {
  /** One pass over what is due. Throws only when `due()` does. */
  tick(): Promise<PassReport<Job>>;
  /** Passes until the signal aborts. A failing `due()` costs that pass and a warning. */
  loop(signal: AbortSignal): Promise<void>;
}

const DEFAULT_INTERVAL_MS = 60_000;

/** Creates a runner; it does nothing until `tick` or `loop` is called. */
export function createSchedule<Job>(options: ScheduleOptions<Job>): ScheduleRunner<Job> {
  const clock = options.clock ?? systemClock;
  const warn = (warning: string, job: Job | undefined) => {
    try {
      options.onWarning?.(warning, job);
    } catch {
      // A failing listener must not stop the schedule.
    }
  };
  const attempt = async <T>(
    work: () => Promise<T> | T,
    warning: string,
    job: Job,
  ): Promise<{ value: T } | undefined> => {
    try {
      return { value: await work() };
    } catch (error) {
      warn(`${warning}: ${error instanceof Error ? error.message : String(error)}`, job);
      return undefined;
    }
  };
  const tick = async (): Promise<PassReport<Job>> => {
    const report = { ran: [] as Job[], failed: [] as Job[], skipped: [] as Job[] };
    for (const job of await options.due(clock.nowMs())) {
      const next = await attempt(
        () => options.next(job, clock.nowMs()),
        "job skipped: its next time could not be computed",
        job,
      );
      if (next === undefined) report.skipped.push(job);
      else if (!(await attempt(() => options.run(job), "job failed and stays due", job)))
        report.failed.push(job);
      else if (!(await attempt(() => options.mark(job, next.value), "job ran but was not marked", job))) {
        report.failed.push(job);
      } else report.ran.push(job);
    }
    return report;
  };
  return {
    tick,
    async loop(signal) {
      while (!signal.aborted) {
        try {
          await tick();
        } catch (error) {
          warn(`due jobs could not be listed: ${error instanceof Error ? error.message : error}`, undefined);
        }
        await clock.sleep(options.intervalMs ?? DEFAULT_INTERVAL_MS, signal);
      }
    },
  };
}
