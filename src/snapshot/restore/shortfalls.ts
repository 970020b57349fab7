// What a restore leaves different from the cell that was saved, known before it starts: paths that the checkpoint does
// not contain, and hard links of which only some are restored. Pure (INV-6).
import type { CheckpointMetadata, Flaw, Listing } from "../model/entry.ts";
import type { RestorePlan } from "./plan.ts";
import type { Scope } from "./scope.ts";

/** Paths that the checkpoint skipped when it was taken. */
export function skippedPaths({ flaws }: Pick<CheckpointMetadata, "flaws">, scope: Scope): Flaw[] {
  return flaws.filter(({ kind, path }) => kind === "skipped" && scope.has(path));
}

/** Restored files whose hard links in the checkpoint are outside of the restored paths. */
export function findSplitLinks({ place }: Pick<RestorePlan, "place">, target: Listing, scope: Scope): Flaw[] {
  if (scope.only === undefined) return [];
  const groups = new Set(place.flatMap(({ entry }) => entry.group ?? []));
  const others = new Map<string, string>();
  for (const [path, { group }] of groups.size === 0 ? [] : target)
    if (group !== undefined && groups.has(group) && !scope.has(path)) others.set(group, path);
  return place.flatMap(({ entry: { path, group } }): Flaw[] => {
    const other = group === undefined ? undefined : others.get(group);
    if (other === undefined) return [];
    const reason = `restored as a separate file: in the checkpoint it is a hard link of ${other}, which was not selected; to link them again, restore both`;
    return [{ path, kind: "degraded", reason }];
  });
}
