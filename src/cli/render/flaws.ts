// What a checkpoint could not capture exactly, in words.
import type { Flaw } from "../../snapshot/entry.ts";
import { harmless } from "./paint.ts";

const SHOWN = 20;

export function describeFlaws(flaws: readonly Flaw[]): string[] {
  if (flaws.length === 0) return [];
  const counts = new Map<string, number>();
  for (const { kind } of flaws) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const head = [...counts].map(([kind, count]) => `${count} ${kind}`).join(", ");
  const lines = flaws
    .slice(0, SHOWN)
    .map(({ kind, path, reason }) => `  ${kind.padEnd(8)}  ${harmless(path)}: ${harmless(reason)}`);
  if (flaws.length > SHOWN) lines.push(`  … and ${flaws.length - SHOWN} more; see them all with --json`);
  return [`not captured exactly: ${head}`, ...lines];
}
