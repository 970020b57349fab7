// Counts what a checkpoint holds. Paths that were skipped, and sidecars that are part of a database's copy, are not in
// it and are not counted.
import type { CheckpointMetadata } from "../model/entry.ts";
import type { Stored } from "../pack/layers.ts";
import type { Survey } from "../scan/found.ts";
import type { FreshItems } from "../scan/next-cache.ts";
import { TYPES } from "../scan/stat-cache.ts";

export function countEntries(
  survey: Survey,
  stored: Stored,
  fresh: FreshItems,
): CheckpointMetadata["counts"] {
  const { walk, cache } = survey;
  const removed = new Set(survey.removed);
  const counts = { files: 0, directories: 0, others: 0, bytes: 0 };
  const add = (type: string, size: number) => {
    if (type === "file") {
      counts.files += 1;
      counts.bytes += size;
    } else if (type === "directory") counts.directories += 1;
    else counts.others += 1;
  };
  for (const [i, { path, type, size, unchanged }] of walk.found.entries()) {
    const item = fresh[i];
    if (item === undefined && (!unchanged || (removed.size > 0 && removed.has(path)))) continue;
    add(type, item?.entry.size ?? size);
  }
  for (const [row, isUnchanged] of walk.unchangedRows.entries())
    if (isUnchanged === 1) add(TYPES[cache!.types[row]!]!, cache!.sizes[row]!);
  let changedBytes = 0;
  for (const { entry } of stored.captured.values()) changedBytes += entry.size;
  return {
    ...counts,
    changed: stored.captured.size,
    removed: stored.removed.length,
    changed_bytes: changedBytes,
    stored_bytes: stored.layers.reduce((sum, layer) => sum + layer.size, 0),
  };
}
