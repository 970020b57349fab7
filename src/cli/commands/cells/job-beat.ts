import type { Config } from "../../../cell/config.ts";
import { beatJob, parseJobName } from "../../../cell/job.ts";
import { asLazarusError, LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";

export const command = defineCommand({
  about:
    "Writes the pulse of a job, so that `lazarus job check` can tell when it stops running. A pulse never breaks its " +
    "caller: when it cannot be written, a warning says why and the exit code is still 0.",
  positionals: [{ name: "job", summary: "name of the job" }],
  options: {
    interval: { type: "number", value: "SECONDS", summary: "how often the job means to run (60)" },
    status: { type: "text", value: "TEXT", summary: "how it went (ok)" },
    pid: { type: "number", value: "PID", summary: "process that does the job (the caller)" },
  },
  examples: [
    ["lazarus job beat nightly-backup --interval 86400", "at the end of a cron job"],
    ["lazarus job beat nightly-backup --interval 86400 --status failed", "with how it went"],
  ],
  exits: [],
  run(context, { args, options }) {
    const job = parseJobName(args.job);
    const config = readConfig(context);
    const { path, error } =
      config instanceof LazarusError
        ? { path: null, error: config }
        : beatJob(context.machine, config, job, {
            intervalSeconds: options.interval || config.heartbeat_interval_seconds,
            pid: options.pid ?? context.callerPid,
            ...(options.status === undefined ? {} : { status: options.status }),
          });
    if (error) context.warn(`${error.message}${error.hint ? `; try: ${error.hint}` : ""}`);
    context.emit("job-beat/1", { job, path, written: error === undefined }, () => "");
    return 0;
  },
});

/** A config that someone broke must not break every cron job: it costs the pulse, and a warning. */
function readConfig(context: CliContext): Config | LazarusError {
  try {
    return context.config.config;
  } catch (error) {
    return asLazarusError(error, "reading the config");
  }
}
