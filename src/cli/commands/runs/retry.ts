import { retryRun } from "../../../run/operations/retry.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";

export const command = defineRunsCommand({
  about:
    "Resets the crash count of a run whose process died repeatedly at the same step. Its host resumes it on the next " +
    "start, from its current step. Nothing else changes.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: STORE_OPTIONS,
  examples: [["lazarus runs retry 20261115-235301-x7k2p9", "after the cause of the crashes is fixed"]],
  exits: ["missing", "conflict", "busy", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const deaths = await retryRun(opened.log, runId);
    context.emit("run-retry/1", { run_id: runId, deaths }, () => `${runId}\n`);
    context.say(`run ${runId} can be resumed: start its host again`);
    return 0;
  },
});
