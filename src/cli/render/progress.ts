// A progress bar on stderr: only on a terminal, never with --json or --quiet, redrawn at most ten times a second, cleared
// at the end.
import type { Clock } from "../../platform/clock.ts";
import type { Progress } from "../../snapshot/mission-context.ts";
import type { Terminal } from "../terminal.ts";
import { formatBytes } from "./format.ts";
import { shorten } from "./width.ts";

export interface ProgressBar {
  show(progress: Progress): void;
  end(): void;
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;
const CLEAR_LINE = "\r\x1b[K";

export interface ProgressBarOptions {
  readonly terminal: Pick<Terminal, "err" | "errIsTerminal" | "columns">;
  readonly clock: Clock;
  readonly globals: { readonly json: boolean; readonly quiet: boolean };
}

export function createProgressBar({ terminal, clock, globals }: ProgressBarOptions): ProgressBar {
  if (globals.json || globals.quiet || !terminal.errIsTerminal) return { show: () => {}, end: () => {} };
  // The first drawing is delayed as well, so that the bar does not flash up for short work.
  let drawnMs = clock.monotonicMs();
  let drawn = false;
  return {
    show(progress) {
      const now = clock.monotonicMs();
      if (now - drawnMs < REDRAW_MS) return;
      drawnMs = now;
      drawn = true;
      terminal.err(CLEAR_LINE + shorten(progressLine(progress), terminal.columns - 1));
    },
    end() {
      if (drawn) terminal.err(CLEAR_LINE);
      drawn = false;
    },
  };
}

export function progressLine({ phase, done, total, unit }: Progress): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(share * BAR_WIDTH);
  const bar = "█".repeat(filled) + "░".repeat(BAR_WIDTH - filled);
  const amount =
    unit === "bytes" ? `${formatBytes(done)} of ${formatBytes(total)}` : `${done} of ${total} files`;
  return `${phase} ${bar} ${Math.floor(share * 100)}%  ${amount}`;
}
