// A stat cache as a tree that is looked up by path: each directory is indexed when it is first needed.
import type { EntryType } from "../model/entry.ts";
import { joinPath, parentPath } from "../model/path-bytes.ts";
import type { Tree } from "../vault/check-tree.ts";
import { nameAt } from "./name-table.ts";
import { baseName, type StatCache, TYPE_CODES, TYPES } from "./stat-cache.ts";

export interface CacheTree extends Tree {
  /** Number of entries, the cell itself included. */
  readonly count: number;
  /** -1 for a path that is not in the cache. */
  rowOf(path: string): number;
  /** Every path below a directory. */
  allBelow(path: string): string[];
}

export function createCacheTree(cache: StatCache | undefined): CacheTree {
  const indexed = new Map<number, Map<string, number>>();
  const childRows = (row: number): Map<string, number> => {
    const known = indexed.get(row);
    if (known !== undefined) return known;
    const names = new Map<string, number>();
    const first = cache!.firstChild[row]!;
    for (let child = first; child < first + cache!.childCount[row]!; child += 1)
      names.set(nameAt(cache!, child), child);
    indexed.set(row, names);
    return names;
  };
  const rowOf = (path: string): number => {
    if (cache === undefined) return -1;
    if (path === ".") return 0;
    const parent = rowOf(parentPath(path));
    return parent < 0 ? -1 : (childRows(parent).get(baseName(path)) ?? -1);
  };
  const typeOf = (path: string): EntryType | undefined => {
    const row = rowOf(path);
    return row < 0 ? undefined : TYPES[cache!.types[row]!]!;
  };
  const children = (path: string): string[] => {
    const row = rowOf(path);
    return row < 0 ? [] : [...childRows(row).keys()].map((name) => joinPath(path, name));
  };
  return {
    count: cache?.count ?? 0,
    rowOf,
    typeOf,
    childCount(path) {
      const row = rowOf(path);
      return row < 0 ? 0 : cache!.childCount[row]!;
    },
    children,
    allBelow(path) {
      const found: string[] = [];
      const pending = [path];
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        for (const child of children(next)) {
          found.push(child);
          pending.push(child);
        }
      }
      return found;
    },
  };
}

/** The rows and paths of all directories. */
export function* directoriesOf(cache: StatCache): Generator<readonly [row: number, path: string]> {
  const pending: [row: number, path: string][] = [[0, "."]];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    yield next;
    const [row, path] = next;
    const first = cache.firstChild[row]!;
    for (let child = first; child < first + cache.childCount[row]!; child += 1)
      if (cache.types[child] === TYPE_CODES.directory)
        pending.push([child, joinPath(path, nameAt(cache, child))]);
  }
}
