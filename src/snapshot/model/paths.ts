// Relations between the paths of a checkpoint. Pure.
import type { EntryType } from "./entry.ts";

/** Names that Lazarus itself creates next to a cell's content; never captured, never removed by a restore. */
export const OWN_NAMES = ".lazarus-*";

/** Whether the predicate holds for any directory above the path, the cell itself excepted. */
export function someParent(path: string, predicate: (parent: string) => boolean): boolean {
  for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1)) {
    if (predicate(path.slice(0, slash))) return true;
  }
  return false;
}

/**
 * The removals that need a whiteout: the topmost ones whose path is not stored again. A whiteout of a directory, or a
 * non-directory stored in its place, removes everything below it.
 */
export function whiteoutsFor(removed: readonly string[], stored: ReadonlyMap<string, EntryType>): string[] {
  const all = new Set(removed);
  const covers = (parent: string): boolean => {
    const type = stored.get(parent);
    return type === undefined ? all.has(parent) : type !== "directory";
  };
  return removed.filter((path) => !stored.has(path) && !someParent(path, covers));
}
