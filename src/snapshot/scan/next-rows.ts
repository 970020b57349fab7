// The rows of a new checkpoint, from those of the last one and the results of survey and packing. They list exactly what the
// checkpoint holds. O(changes). Pure.
import type { CapturedItem, MissedItem } from "../model/capture-item.ts";
import { parentPath } from "../model/path-bytes.ts";
import { ChangedRows } from "./changed-rows.ts";
import type { Survey } from "./found.ts";
import { createRow } from "./stat-row.ts";

/** A file written this shortly before the scan could change again without a change in its stat. */
const RACY_MS = 2000;

/** What the layers of a checkpoint hold and remove. */
export interface Kept {
  readonly captured: ReadonlyMap<string, CapturedItem>;
  readonly missed: readonly MissedItem[];
  readonly removed: readonly string[];
}

export function nextRows(survey: Survey, stored: Kept): ChangedRows {
  const { walk, refreshed, removed } = survey;
  const rows = new ChangedRows(survey.rows, survey.rules);
  const { captured } = stored;
  const isCaptured = (path: string) => captured.has(path) || refreshed.has(path);
  for (const path of [...removed, ...stored.removed]) if (!isCaptured(path)) rows.remove(path);
  for (const items of [refreshed, captured])
    for (const [path, item] of items) {
      const isPartial =
        item.entry.type === "directory" && !(walk.read.get(path) ?? !rows.stat(path)?.isPartial);
      rows.set(path, createRow(item, { isRacy: isRacy(survey, item, path), isPartial }));
    }
  const isRemoved = new Set(removed);
  const lost = walk.found
    .values()
    .filter(({ path, unchanged }) => (!unchanged || isRemoved.has(path)) && !isCaptured(path))
    .map(({ path }) => path)
    .toArray();
  for (const path of lost) rows.removeTree(path);
  for (const [path, isComplete] of walk.read) setPartial(rows, path, !isComplete);
  const skipped = [...walk.flaws.keys(), ...stored.missed.map(({ path }) => path)];
  // These exist and have no row: not all names of their directories are known.
  for (const path of [...lost, ...skipped])
    if (path !== "." && rows.stat(path) === undefined) setPartial(rows, parentPath(path), true);
  rows.skipped = new Set(survey.isPartial ? [...survey.rows.skipped, ...skipped] : skipped);
  return rows;
}

function setPartial(rows: ChangedRows, path: string, isPartial: boolean): void {
  const row = rows.stat(path);
  if (row?.type === "directory" && row.isPartial !== isPartial)
    rows.set(path, { ...rows.entry(path)!, isPartial });
}

/**
 * A database that was captured from a copy is racy, because its stat does not describe the copy; so is a file that may have
 * been mapped since mappings were looked for, and a directory whose stat is newer than its names.
 */
function isRacy(survey: Survey, { entry, mark, torn }: CapturedItem, path: string): boolean {
  return (
    torn !== undefined ||
    survey.sources.has(path) ||
    survey.mapped.has(mark.ino) ||
    !(mark.ctimeMs < survey.scanStartMs - RACY_MS) ||
    (entry.type === "file" && mark.ctimeMs >= survey.mappedSinceMs) ||
    (entry.type === "directory" && mark.ctimeMs >= survey.namesSinceMs)
  );
}
