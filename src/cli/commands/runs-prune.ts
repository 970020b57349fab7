import { LazarusError } from "../../platform/errors.ts";
import { openSqliteRunStore } from "../../run/open.ts";
import { defineCommand } from "../command.ts";
import { listPlacedRuns, STORE_OPTIONS } from "./runs-places.ts";

const DAY_MS = 86_400_000;

export const command = defineCommand({
  about:
    "Takes away runs that ended long ago. Open runs, runs with an effect of unknown outcome, and messages that a fork " +
    "needs stay; that every kept run still loads is proven before anything goes.",
  positionals: [],
  options: {
    ...STORE_OPTIONS,
    days: { type: "number", value: "N", summary: "runs that ended more than N days ago (30)" },
    keep: { type: "number", value: "N", summary: "keep the newest N of each store whatever their age (0)" },
  },
  examples: [["lazarus runs prune --days 7 --keep 20", "of every cell"]],
  exits: ["damaged", "machine"],
  async run(context, { options }) {
    const { days = 30, keep = 0 } = options;
    if (!(days >= 0) || !(keep >= 0)) {
      throw new LazarusError("USAGE", "--days and --keep are numbers from 0 up", {
        hint: "lazarus runs prune --help",
      });
    }
    const places = [...new Set((await listPlacedRuns(context, options)).map(({ store }) => store))];
    const removed: string[] = [];
    for (const place of places) {
      await using store = place.includes("://")
        ? await (await import("../../run/stores/postgres.ts")).openPostgresRunStore(place, {
            machine: context.machine,
          })
        : openSqliteRunStore(place, { machine: context.machine });
      removed.push(...(await store.prune({ olderThanMs: days * DAY_MS, keepLast: keep })).removed);
    }
    context.emit("runs-prune/1", { removed, stores: places.length }, () => `${removed.length} runs pruned\n`);
    return 0;
  },
});
