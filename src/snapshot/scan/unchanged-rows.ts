// Cache rows that a walk marked as unchanged, as `Found` objects for the few callers that need them.
import { joinPath } from "../model/path-bytes.ts";
import type { Found, Walk } from "./found.ts";
import { nameAt } from "./name-table.ts";
import { type StatCache, TYPE_CODES, TYPES } from "./stat-cache.ts";

export function rowAsFound(cache: StatCache, row: number, path: string): Found {
  return {
    path,
    type: TYPES[cache.types[row]!]!,
    row,
    unchanged: true,
    size: cache.sizes[row]!,
    nlink: cache.nlinks[row]!,
  };
}

/** Every path that exists, unchanged ones included. Slow for large cells: one object per path. */
export function* allFound({ found, unchangedRows }: Walk, cache: StatCache | undefined): Generator<Found> {
  yield* found;
  if (cache === undefined) return;
  const pending: [row: number, path: string][] = [[0, "."]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [directory, parent] = next;
    const first = cache.firstChild[directory]!;
    for (let row = first; row < first + cache.childCount[directory]!; row += 1) {
      const isDirectory = cache.types[row] === TYPE_CODES.directory;
      if (unchangedRows[row] === 0 && !isDirectory) continue;
      const path = joinPath(parent, nameAt(cache, row));
      if (unchangedRows[row] === 1) yield rowAsFound(cache, row, path);
      if (isDirectory) pending.push([row, path]);
    }
  }
}
