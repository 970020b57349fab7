import type { Config } from "../../../cell/config.ts";
import { beatJob, parseJobName } from "../../../cell/job.ts";
import { asLazarusError, LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";

export const command = defineCommand({
  about:
    "Writes the heartbeat of a job, so that `lazarus job check` can tell when it stops running. It never fails its " +
    "caller: if the file cannot be written, it prints a warning and exits 0.",
  positionals: [{ name: "job", summary: "name of the job" }],
  options: {
    interval: { type: "number", value: "SECONDS", summary: "expected interval of the job (default 60)" },
    status: { type: "text", value: "TEXT", summary: "result of the job (default ok)" },
    pid: { type: "number", value: "PID", summary: "process of the job (default: the caller)" },
  },
  examples: [
    ["lazarus job beat nightly-backup --interval 86400", "at the end of a cron job"],
    ["lazarus job beat nightly-backup --interval 86400 --status failed", "with a result"],
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

/** A broken config must not fail every cron job: it only costs the heartbeat, with a warning. */
function readConfig(context: CliContext): Config | LazarusError {
  try {
    return context.config.config;
  } catch (error) {
    return asLazarusError(error, "reading the config");
  }
}
