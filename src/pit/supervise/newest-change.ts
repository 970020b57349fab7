// The expensive sign of activity: the newest change below a directory. Asked only when every cheap sign has been silent
// for the whole limit, and bounded.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const MOST_ENTRIES = 50_000;

/** The newest modification time below `root`; stops at the first that is newer than `sinceMs`. */
export function newestChangeMs(root: string, sinceMs: number): number {
  let newestMs = 0;
  let left = MOST_ENTRIES;
  const open = [root];
  for (let directory = open.pop(); directory !== undefined && left > 0; directory = open.pop()) {
    try {
      for (const entry of readdirSync(directory, { withFileTypes: true })) {
        left -= 1;
        const path = join(directory, entry.name);
        newestMs = Math.max(newestMs, lstatSync(path).mtimeMs);
        if (newestMs > sinceMs) return newestMs;
        if (entry.isDirectory()) open.push(path);
      }
    } catch {
      // Gone or closed to us meanwhile: no sign of activity either way.
    }
  }
  return newestMs;
}
