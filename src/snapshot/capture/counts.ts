// Counts what a checkpoint holds. Paths that were skipped, and sidecars that are part of a database's copy, are not in
// it and are not counted.
import type { CheckpointMetadata } from "../model/entry.ts";
import type { Stored } from "../pack/layers.ts";
import type { StatRows } from "../scan/stat-rows.ts";

/** `rows` are those of the checkpoint, and include their totals. */
export function countEntries({ totals }: StatRows, stored: Stored): CheckpointMetadata["counts"] {
  let changedBytes = 0;
  for (const { entry } of stored.captured.values()) changedBytes += entry.size;
  return {
    ...totals,
    changed: stored.captured.size,
    removed: stored.removed.length,
    changed_bytes: changedBytes,
    stored_bytes: stored.layers.reduce((sum, layer) => sum + layer.size, 0),
  };
}
