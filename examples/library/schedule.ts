// A schedule: runs the jobs that are due and computes when they are due next.
//
//   node examples/library/schedule.ts
import { createSchedule, nextCronTime } from "lazarus/schedule";

const jobs = [{ name: "report", cron: "30 6 * * 1-5", dueMs: 0 as number | null }];
const schedule = createSchedule<(typeof jobs)[number]>({
  due: (nowMs) => jobs.filter(({ dueMs }) => dueMs !== null && dueMs <= nowMs),
  next: ({ cron }, nowMs) => nextCronTime(cron, nowMs, "Europe/Berlin"),
  run: ({ name }) => console.log(`running ${name}`),
  mark: (job, nextMs) => {
    job.dueMs = nextMs;
  },
});
const { ran } = await schedule.tick();
console.log(`ok: ${ran.length} job, next at ${new Date(jobs[0]!.dueMs!).toISOString()}`);
