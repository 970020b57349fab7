// What a checkpoint could not capture exactly, in words.
import type { Flaw } from "../../snapshot/model/entry.ts";
import { harmless } from "./paint.ts";

const SHOWN = 20;
const LONGEST = 240;

export function describeFlaws(flaws: readonly Flaw[]): string[] {
  if (flaws.length === 0) return [];
  const counts = new Map<string, number>();
  for (const { kind } of flaws) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const head = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  return [`not captured exactly: ${head}`, ...flawLines(flaws)];
}

/** A line for each of the first few. */
export function flawLines(flaws: readonly Flaw[]): string[] {
  const lines = flaws
    .slice(0, SHOWN)
    .map(({ kind, path, reason }) => `  ${kind.padEnd(8)}  ${harmless(shorten(path))}: ${harmless(reason)}`);
  if (flaws.length > SHOWN) lines.push(`  … and ${flaws.length - SHOWN} more; see them all with --json`);
  return lines;
}

/** A path may have 4,096 bytes: its beginning and its end say which one it is. */
function shorten(path: string): string {
  return path.length <= LONGEST ? path : `${path.slice(0, LONGEST / 2)} … ${path.slice(-LONGEST / 2)}`;
}
