// What a walk marked as still: rows of the stat cache that are as they were, for the few who need them as objects.

import { joinPath } from "../model/path-bytes.ts";
import { nameAt } from "./name-table.ts";
import { type StatCache, TYPE_CODES, TYPES } from "./stat-cache.ts";
import type { Found, Walk } from "./walk.ts";

/** What is still, as if it had been looked at. */
export function foundStill(cache: StatCache, row: number, path: string): Found {
  return {
    path,
    type: TYPES[cache.types[row]!]!,
    row,
    unchanged: true,
    size: cache.sizes[row]!,
    nlink: cache.nlinks[row]!,
  };
}

/** All that is there, what is still included: an object for each, which takes its time where there are many. */
export function* everythingIn({ found, still }: Walk, cache: StatCache | undefined): Generator<Found> {
  yield* found;
  if (cache === undefined) return;
  const pending: [row: number, path: string][] = [[0, "."]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [directory, path] = next;
    const first = cache.firstChild[directory]!;
    for (let row = first; row < first + cache.childCount[directory]!; row += 1) {
      const isDirectory = cache.types[row] === TYPE_CODES.directory;
      if (still[row] === 0 && !isDirectory) continue;
      const below = joinPath(path, nameAt(cache, row));
      if (still[row] === 1) yield foundStill(cache, row, below);
      if (isDirectory) pending.push([row, below]);
    }
  }
}
