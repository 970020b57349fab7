// Describes what a checkpoint could not capture exactly.
import type { Flaw } from "../../snapshot/model/entry.ts";
import { escapeControls } from "./paint.ts";

const SHOWN = 20;
const LONGEST = 240;

export function describeFlaws(flaws: readonly Flaw[]): string[] {
  if (flaws.length === 0) return [];
  const counts = new Map<string, number>();
  for (const { kind } of flaws) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const head = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  return [`not captured exactly: ${head}`, ...flawLines(flaws)];
}

/** One line for each of the first 20 flaws. */
export function flawLines(flaws: readonly Flaw[]): string[] {
  const lines = flaws
    .slice(0, SHOWN)
    .map(
      ({ kind, path, reason }) =>
        `  ${kind.padEnd(8)}  ${escapeControls(shorten(path))}: ${escapeControls(reason)}`,
    );
  if (flaws.length > SHOWN) lines.push(`  … and ${flaws.length - SHOWN} more; --json lists all`);
  return lines;
}

/** Paths can have 4,096 bytes; the start and the end identify them. */
function shorten(path: string): string {
  return path.length <= LONGEST ? path : `${path.slice(0, LONGEST / 2)} … ${path.slice(-LONGEST / 2)}`;
}
