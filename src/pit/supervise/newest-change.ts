// The newest change below a directory: an expensive sign of activity, bounded, and used only when the cheap ones are silent.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const MAX_ENTRIES = 50_000;

/** The newest modification time below `root`; returns early with the first one after `sinceMs`. */
export function newestChangeMs(root: string, sinceMs: number): number {
  let newestMs = 0;
  let remaining = MAX_ENTRIES;
  const pending = [root];
  for (let directory = pending.pop(); directory !== undefined && remaining > 0; directory = pending.pop()) {
    try {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        remaining -= 1;
        const path = join(directory, entry.name);
        newestMs = Math.max(newestMs, lstatSync(path).mtimeMs);
        if (newestMs > sinceMs) return newestMs;
        if (entry.isDirectory()) pending.push(path);
      }
    } catch {
      // Deleted or unreadable: no sign of activity either way.
    }
  }
  return newestMs;
}
