import { LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { findRun, STORE_OPTIONS, sameStore } from "./places.ts";

export const command = defineCommand({
  about:
    "Gives a run another chance whose process died at the same step again and again. Its host resumes it at the next " +
    "start, from the step where it stands. Nothing else about it changes.",
  positionals: [{ name: "run", summary: "id of the run, or the beginning of it" }],
  options: STORE_OPTIONS,
  examples: [["lazarus runs retry 20261115-235301-x7k2p9", "what killed it is mended"]],
  exits: ["missing", "conflict", "busy", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const { status, deaths } = (await opened.head(runId))!;
    if (status !== "running") {
      throw new LazarusError("RUN_ENDED", `run ${runId} is ${status}: there is nothing to retry`, {
        hint: `lazarus runs show ${runId}${sameStore(options)}`,
      });
    }
    const lease = await opened.claim(runId);
    if (lease === undefined) {
      throw new LazarusError("RUN_BUSY", `run ${runId} is being worked on`, {
        hint: `lazarus runs show ${runId}${sameStore(options)}`,
      });
    }
    // To give it back is what forgives.
    await opened.release(lease);
    context.emit("run-retry/1", { run_id: runId, deaths }, () => `${runId}\n`);
    context.say(`run ${runId} can be resumed: start its host again`);
    return 0;
  },
});
