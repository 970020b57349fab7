import { asLazarusError, ERROR_KINDS } from "../../../platform/errors.ts";
import type { EndStatus } from "../../../run/model/types.ts";
import { pruneRuns } from "../../../run/operations/prune.ts";
import { formatCount } from "../../render/format.ts";
import { defineRunsCommand } from "./define.ts";
import { listStores, openStore, STORE_OPTIONS } from "./places.ts";

const DAY_MS = 86_400_000;

export const command = defineRunsCommand({
  about:
    "Removes runs that ended long ago. Unfinished runs, runs with an effect of unknown outcome, and messages that a fork " +
    "needs are kept; nothing is removed unless every remaining run can still be loaded.",
  positionals: [],
  options: {
    ...STORE_OPTIONS,
    days: { type: "number", value: "N", summary: "remove runs that ended more than N days ago (default 30)" },
    status: {
      type: "texts",
      value: "STATUS",
      summary: "only runs that ended like this (default: all)",
      choices: ["completed", "failed", "cancelled", "timeout", "killed"],
    },
    keep: { type: "number", value: "N", summary: "keep the newest N of each store (default 0)" },
  },
  examples: [["lazarus runs prune --days 7 --keep 20", "in every cell"]],
  exits: ["damaged", "machine"],
  async run(context, { options }) {
    const { days = 30, keep = 0, status } = options;
    const statuses = status.length === 0 ? undefined : (status as EndStatus[]);
    const places = listStores(context, options);
    const removed: string[] = [];
    const problems: string[] = [];
    for (const place of places) {
      try {
        await using store = await openStore(context, place);
        const policy = { olderThanMs: days * DAY_MS, keepLast: keep };
        removed.push(...(await pruneRuns(store.log, { ...policy, statuses })).removed);
      } catch (error) {
        // An unreadable store does not stop the others; if it is the only one, the command fails.
        if (places.length === 1) throw error;
        problems.push(asLazarusError(error, `pruning ${place}`).message);
      }
    }
    context.emit(
      "runs-prune/1",
      { removed, stores: places.length, problems },
      () => `${formatCount(removed.length, "run")} pruned\n`,
    );
    for (const problem of problems) context.say(`not pruned: ${problem}`);
    return problems.length > 0 ? ERROR_KINDS.damaged.exit : 0;
  },
});
