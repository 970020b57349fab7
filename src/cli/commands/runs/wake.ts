import { describeWait } from "../../../run/operations/list.ts";
import { wakeRun } from "../../../run/operations/wake.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";

export const command = defineRunsCommand({
  about:
    "Wakes a run that sleeps or waits for a message: its sleep ends now, and its wait ends as if it had timed out. " +
    "To answer an approval request, use `runs approve`.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: STORE_OPTIONS,
  examples: [["lazarus runs wake 20261115-235301-x7k2p9", "end its sleep now"]],
  exits: ["missing", "conflict", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const waits = await wakeRun(opened.log, runId);
    const ended = waits.map(({ id, kind, names }) => ({ id, kind, names }));
    context.emit("run-wake/1", { run_id: runId, waits: ended }, () => `${runId}\n`);
    context.say(`ended: ${waits.map(describeWait).join(", ")}`);
    return 0;
  },
});
