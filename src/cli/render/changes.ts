// What a restore does to a cell, in words: a line per kind of change, with the first few paths.
import type { Changes } from "../../snapshot/restore-plan.ts";
import { harmless, type Painter } from "./paint.ts";

const SHOWN = 10;

export function describeChanges(changes: Changes, paint: Painter): string {
  const lines: string[] = [];
  const list = (name: string, paths: readonly string[], mark: string) => {
    if (paths.length === 0) return;
    lines.push(`  ${name} ${paths.length}`);
    for (const path of paths.slice(0, SHOWN)) lines.push(`    ${mark} ${harmless(path)}`);
    if (paths.length > SHOWN) lines.push(`      … and ${paths.length - SHOWN} more; all of them with --json`);
  };
  list("added", changes.added, paint.green("+"));
  list("changed", changes.changed, paint.yellow("~"));
  list("metadata", changes.metadata, paint.yellow("·"));
  list("removed", changes.removed, paint.red("-"));
  const kept = changes.kept.map(({ path, reason }) => `${path}: ${reason}`);
  list("kept", kept, "=");
  return lines.map((line) => `${line}\n`).join("");
}

export function countChanges(changes: Changes): Record<keyof Changes, number> {
  return {
    added: changes.added.length,
    changed: changes.changed.length,
    metadata: changes.metadata.length,
    removed: changes.removed.length,
    kept: changes.kept.length,
  };
}
