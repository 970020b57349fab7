// Describes what a restore changes in a cell: a line per kind of change, with the first few paths.
import type { Changes } from "../../snapshot/restore/plan.ts";
import { escapeControls, type Painter } from "./paint.ts";

const SHOWN = 10;
const GIT = /(?:^|\/)\.git\//;

export function describeChanges(changes: Changes, paint: Painter): string {
  const lines: string[] = [];
  const list = (name: string, all: readonly string[], mark: string) => {
    if (all.length === 0) return;
    // Files inside .git change with every checkpoint and are only counted.
    const paths = all.filter((path) => !GIT.test(path));
    lines.push(`  ${name} ${all.length}`);
    for (const path of paths.slice(0, SHOWN)) lines.push(`    ${mark} ${escapeControls(path)}`);
    if (paths.length > SHOWN) lines.push(`      … and ${paths.length - SHOWN} more; --json lists all`);
    if (paths.length < all.length) lines.push(`      ${all.length - paths.length} inside .git`);
  };
  list("added", changes.added, paint.green("+"));
  list("changed", changes.changed, paint.yellow("~"));
  list("metadata", changes.metadata, paint.yellow("·"));
  list("removed", changes.removed, paint.red("-"));
  const kept = changes.kept.map(({ path, reason }) => `${path}: ${reason}`);
  list("kept", kept, "=");
  return lines.map((line) => `${line}\n`).join("");
}
