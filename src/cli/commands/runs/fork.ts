import { LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { findRun, STORE_OPTIONS, sameStore } from "./places.ts";

export const command = defineCommand({
  about:
    "Creates a run that shares the first steps of another one and continues on its own. The original is not touched, and " +
    "no messages are copied. The fork continues when its host resumes it.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: {
    ...STORE_OPTIONS,
    at: { type: "number", value: "STEP", summary: "last shared step; 0 shares only the input" },
  },
  examples: [["lazarus runs fork 20261115-235301-x7k2p9 --at 3", "try again from step 3"]],
  exits: ["missing", "damaged", "machine"],
  async run(context, { args, options }) {
    if (options.at === undefined) {
      throw new LazarusError("USAGE", "missing --at STEP", { hint: `lazarus runs fork ${args.run} --at 3` });
    }
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const fork = await opened.fork(runId, options.at);
    context.emit(
      "run-fork/1",
      { run_id: fork.runId, fork_of: runId, step: fork.step },
      () => `${fork.runId}\n`,
    );
    context.say(
      `forked ${runId} at step ${fork.step}; next: lazarus runs show ${fork.runId}${sameStore(options)}`,
    );
    return 0;
  },
});
