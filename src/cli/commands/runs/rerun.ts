import { rerunRun } from "../../../run/operations/fork.ts";
import { defineRunsCommand } from "./define.ts";
import { FORK_OPTIONS, reportFork } from "./fork.ts";
import { findRun } from "./places.ts";

export const command = defineRunsCommand({
  about:
    "Starts a new run with the input of an earlier one. Effects of the original are listed, because the new run may repeat " +
    "them under its own ids.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: FORK_OPTIONS,
  examples: [["lazarus runs rerun 20261115-235301-x7k2p9", "once more from the beginning"]],
  exits: ["missing", "damaged", "conflict", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const { id, with: agentId } = options;
    return reportFork(context, options, await rerunRun(opened.log, runId, { runId: id, agentId }));
  },
});
