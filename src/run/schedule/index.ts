// lazarus/schedule: a generic runner of due jobs, and the cron grammar.
export { nextCronTime } from "./cron.ts";
export { createSchedule, type PassReport, type ScheduleOptions, type ScheduleRunner } from "./runner.ts";
