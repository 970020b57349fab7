// A progress bar on stderr for long work: only on a terminal, never with --json or --quiet, redrawn at most ten times a
// second, and gone when the work is done.
import type { Progress } from "../../snapshot/mission-context.ts";
import type { CliContext } from "../context.ts";
import { formatBytes } from "./format.ts";
import { shorten } from "./width.ts";

export interface ProgressBar {
  show(progress: Progress): void;
  end(): void;
}

const REDRAW_MS = 100;
const BAR_WIDTH = 24;
const CLEAR_LINE = "\r\x1b[K";

export function createProgressBar(context: CliContext): ProgressBar {
  const { terminal, globals, machine } = context;
  if (globals.json || globals.quiet || !terminal.errIsTerminal) return { show: () => {}, end: () => {} };
  // Short work is done before the first drawing: nothing flashes up.
  let drawnMs = machine.clock.monotonicMs();
  let drawn = false;
  return {
    show(progress) {
      const now = machine.clock.monotonicMs();
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
