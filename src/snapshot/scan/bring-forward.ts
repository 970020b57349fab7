// The rows of a checkpoint from those of an earlier one and the tables of the layers since: for a store that was not written,
// because the process was killed after it had published. What the layers name has no stat and will be hashed. Pure.
import { parentPath } from "../model/path-bytes.ts";
import type { Toc } from "../vault/toc.ts";
import { ChangedRows } from "./changed-rows.ts";
import { createUnknownRow } from "./stat-row.ts";
import type { StatRows } from "./stat-rows.ts";

/** `skipped`: paths that the checkpoint lists as not captured. */
export function bringForward(
  rows: StatRows,
  tables: readonly Pick<Toc, "entries" | "removed">[],
  skipped: readonly string[],
): ChangedRows {
  // Without the digest of the patterns, each row is compared with them.
  const forward = new ChangedRows(rows, "");
  const removed = tables.flatMap((table) => table.removed);
  for (const table of tables) {
    for (const path of table.removed) forward.remove(path);
    for (const entry of table.entries) forward.set(entry.path, createUnknownRow(entry));
  }
  // They may exist: not all names of their directories are known.
  for (const path of [...removed, ...skipped]) {
    const parent = forward.entry(parentPath(path));
    if (parent?.type === "directory") forward.set(parentPath(path), { ...parent, isPartial: true });
  }
  forward.skipped = new Set([...rows.skipped, ...skipped]);
  return forward;
}
