import { checkJobs, type JobReport, parseJobName } from "../../../cell/job.ts";
import { epochSeconds } from "../../../platform/clock.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { formatCount, formatDuration } from "../../render/format.ts";
import { renderTable } from "../../render/table.ts";

export const command = defineCommand({
  about:
    "Lists jobs whose heartbeat is older than twice their interval or cannot be read. A job given by name must have a " +
    "heartbeat; one that never ran is reported.",
  positionals: [{ name: "job", summary: "check only these jobs", optional: true, variadic: true }],
  options: { all: { type: "flag", summary: "also list jobs that are on time" } },
  examples: [
    ["lazarus job check", "exit 3 when a job is stale"],
    ["lazarus job check lazarus_pit", "check from cron that the pit is running"],
  ],
  exits: ["alert", "machine"],
  run(context, { args, options }) {
    const names = args.job.length > 0 ? args.job.map(parseJobName) : undefined;
    const jobs = checkJobs(context.config.config, epochSeconds(context.machine.clock), names);
    const findings = jobs.filter((job) => job.status !== "fresh");
    const shown = options.all ? jobs : findings;
    const status = findings.length > 0 ? "alert" : "ok";
    context.emit("job-check/1", { status, stale: findings.length, jobs }, () => {
      const table = shown.length > 0 ? render(shown, context.terminal.columns) : "";
      return `${table}${formatCount(jobs.length, "job")} checked, ${findings.length} stale\n`;
    });
    return findings.length > 0 ? ERROR_KINDS.alert.exit : 0;
  },
});

function render(jobs: readonly JobReport[], width: number): string {
  return renderTable<JobReport>(
    [
      { head: "JOB", cell: (job) => job.job, shrinks: true },
      { head: "STATUS", cell: (job) => job.status },
      {
        head: "AGE",
        cell: (job) => (job.age_seconds === null ? "-" : formatDuration(job.age_seconds)),
        alignRight: true,
      },
      { head: "NOTE", cell: (job) => job.reason ?? job.last_status ?? "", shrinks: true },
    ],
    jobs,
    width,
  );
}
