import { LazarusError } from "../../../platform/errors.ts";
import { cancelRun } from "../../../run/operations/cancel.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";
import { sameStore } from "./same-store.ts";

const WAIT_SECONDS = 10;

export const command = defineRunsCommand({
  about:
    "Cancels a run and its child runs. A process that is executing the run ends it after a grace period; otherwise it ends " +
    "immediately. An effect that was in progress may or may not have happened: its outcome becomes unknown, and the command " +
    "lists it.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: {
    ...STORE_OPTIONS,
    wait: {
      type: "number",
      value: "SECONDS",
      summary: `how long to wait for its process (default ${WAIT_SECONDS})`,
    },
  },
  examples: [["lazarus runs cancel 20261115-235301-x7k2p9", "end it and its child runs"]],
  exits: ["missing", "conflict", "busy", "machine"],
  async run(context, { args, options }) {
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const runs = await cancelRun(opened.log, runId, (options.wait ?? WAIT_SECONDS) * 1000);
    const hint = `lazarus runs show ${runId}${sameStore(options)}`;
    if (runs.length === 0) throw new LazarusError("RUN_ENDED", `run ${runId} has already ended`, { hint });
    const rows = runs.map((run) => ({
      run_id: run.runId,
      status: run.status,
      unknown_effects: run.unknownEffects,
    }));
    context.emit("run-cancel/1", { runs: rows }, () =>
      runs.map((run) => `${run.runId} ${run.status === "cancelled" ? "cancelled" : "cancelling"}\n`).join(""),
    );
    for (const effect of runs.flatMap(({ unknownEffects }) => unknownEffects)) {
      context.say(
        `${effect} may or may not have happened; when you know: lazarus runs resolve ${effect}${sameStore(options)} --done | --fail`,
      );
    }
    if (runs.some(({ status }) => status !== "cancelled")) {
      context.say(`its process has not ended it yet; ${hint}`);
    }
    return 0;
  },
});
