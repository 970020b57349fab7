import { CELL_STATUSES } from "../../../cell/classify.ts";
import { type CellReport, type ScanReport, scanCells } from "../../../cell/scan.ts";
import { createInactiveLookup } from "../../../pit/inactive.ts";
import { epochSeconds } from "../../../platform/clock.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { formatCount, formatDuration } from "../../render/format.ts";
import { escapeControls, type Painter } from "../../render/paint.ts";
import { renderTable } from "../../render/table.ts";

export const command = defineCommand({
  about:
    "Reports the state of every cell below the missions root: incomplete if a required directory is missing, " +
    "uninitialized without a readable heartbeat, stale if the heartbeat is too old, inactive if that is because its agent " +
    "has finished or was stopped, otherwise healthy. Read-only.",
  positionals: [],
  options: {
    watch: { type: "flag", summary: "refresh until interrupted" },
    interval: {
      type: "number",
      value: "SECONDS",
      summary: "with --watch: seconds between scans (default 2)",
    },
    check: { type: "flag", summary: "exit 3 unless every cell is healthy or inactive" },
  },
  examples: [
    ["lazarus scan", "one line per cell"],
    ["lazarus scan --json | jq .summary", "for other programs"],
    ["lazarus scan --check --quiet || echo trouble", "in a script"],
    ["lazarus scan --watch", "refresh every two seconds"],
  ],
  exits: ["alert", "machine"],
  async run(context, { options }) {
    // Installs the signal handlers before the first output: the caller may interrupt right after it.
    const signal = options.watch ? context.signal : undefined;
    let report = show(context, options.watch);
    while (signal !== undefined && !signal.aborted) {
      await context.machine.clock.sleep((options.interval ?? 2) * 1000, signal);
      if (!signal.aborted) report = show(context, true);
    }
    const { healthy, inactive, total_cells } = report.summary;
    return options.check && healthy + inactive < total_cells ? ERROR_KINDS.alert.exit : 0;
  },
});

const CLEAR_SCREEN = "\x1b[H\x1b[2J";

function show(context: CliContext, watching: boolean): ScanReport {
  const { config } = context.config;
  const report = scanCells(
    config,
    epochSeconds(context.machine.clock),
    createInactiveLookup({ machine: context.machine, config }),
  );
  const redraw = watching && context.terminal.outIsTerminal && !context.globals.json;
  if (redraw) context.terminal.out(CLEAR_SCREEN);
  context.emit("scan/1", report, () => render(report, context.paint, context.terminal.columns));
  return report;
}

function render(report: ScanReport, paint: Painter, width: number): string {
  const { summary } = report;
  const colors = {
    healthy: paint.green,
    stale: paint.red,
    inactive: paint.dim,
    incomplete: paint.yellow,
    uninitialized: paint.yellow,
  };
  const table = renderTable<CellReport>(
    [
      { head: "MISSION", cell: (cell) => cell.mission_id, shrinks: true },
      { head: "STATUS", cell: (cell) => cell.status, paint: (text, cell) => colors[cell.status](text) },
      {
        head: "AGE",
        cell: (cell) => (cell.age_seconds === null ? "-" : formatDuration(cell.age_seconds)),
        alignRight: true,
      },
      { head: "NOTE", cell: note, shrinks: true },
    ],
    report.cells,
    width,
  );
  const counts = CELL_STATUSES.map((status) => `${summary[status]} ${status}`);
  const cells = formatCount(summary.total_cells, "cell");
  const skipped = report.skipped
    .map(({ name, reason }) => `skipped ${escapeControls(name)}: ${escapeControls(reason)}\n`)
    .join("");
  const next = summary.total_cells === 0 ? "no cells yet; create one with: lazarus init <mission>\n" : "";
  return `${summary.total_cells > 0 ? table : ""}${skipped}${cells} in ${report.missions_root}: ${counts.join(", ")}\n${next}`;
}

function note(cell: CellReport): string {
  if (cell.skew_seconds !== null) return `heartbeat is ${formatDuration(cell.skew_seconds)} in the future`;
  return cell.reason ?? "";
}
