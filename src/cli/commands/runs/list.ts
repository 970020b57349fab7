import { ERROR_KINDS } from "../../../platform/errors.ts";
import { OPEN } from "../../../run/journal/head.ts";
import { formatCount, formatTime } from "../../render/format.ts";
import { renderTable } from "../../render/table.ts";
import { defineRunsCommand } from "./define.ts";
import { listPlacedRuns, type PlacedRun, STORE_OPTIONS } from "./places.ts";
import { sameStore } from "./same-store.ts";

export const command = defineRunsCommand({
  about:
    "Lists durable runs of all cells (state/runs.db), of one mission, or of the store given by --store. A run with status " +
    "needs-human has an effect whose outcome is unknown; a waiting one waits for an approval, a message or a time; a queued " +
    "one for a slot.",
  positionals: [],
  options: {
    ...STORE_OPTIONS,
    open: { type: "flag", summary: "only unfinished runs" },
    check: { type: "flag", summary: "exit 4 if a run needs a human" },
  },
  examples: [
    ["lazarus runs", "all runs of all cells"],
    ["lazarus runs --open --mission tidy-inbox", "unfinished runs of one cell"],
    ["lazarus runs --store postgres://db/agents", "runs in a shared database"],
  ],
  exits: ["unknown-outcome", "missing", "damaged", "machine"],
  async run(context, { options }) {
    const { runs: all, problems, cut } = await listPlacedRuns(context, options);
    const runs = options.open ? all.filter(({ status }) => OPEN.includes(status)) : all;
    const waiting = runs.filter(({ status }) => status === "needs-human");
    context.emit("runs/1", { runs, needs_human: waiting.length, problems, cut }, () =>
      runs.length === 0
        ? "no runs\n"
        : renderTable<PlacedRun>(
            [
              { head: "RUN", cell: (run) => run.runId },
              { head: "MISSION", cell: (run) => run.mission ?? "-", shrinks: true },
              { head: "AGENT", cell: (run) => run.agentId, shrinks: true },
              { head: "STATUS", cell: (run) => run.status },
              { head: "STEP", cell: (run) => String(run.step), alignRight: true },
              {
                head: "UNKNOWN",
                cell: (run) => (run.unknownEffects > 0 ? String(run.unknownEffects) : "-"),
                alignRight: true,
              },
              { head: "UPDATED", cell: (run) => formatTime(run.updatedAtMs) },
            ],
            runs,
            context.terminal.columns,
          ),
    );
    if (waiting[0] !== undefined) {
      context.say(
        `${formatCount(waiting.length, "run")} waiting for a human; next: lazarus runs show ${waiting[0].runId}${sameStore(options)}`,
      );
    }
    for (const store of cut) {
      context.say(`${store} has more runs than listed; lazarus runs show <id> finds all of them`);
    }
    for (const { problem } of problems) context.say(`not listed: ${problem}`);
    if (problems.length > 0) return ERROR_KINDS.damaged.exit;
    return options.check && waiting.length > 0 ? ERROR_KINDS["unknown-outcome"].exit : 0;
  },
});
