// `lazarus/schedule`: a runner of due jobs, and cron expressions.
export { nextCronTime } from "./cron.ts";
export { createSchedule, type PassReport, type ScheduleOptions, type ScheduleRunner } from "./runner.ts";
