// Makes the stat cache that goes with a checkpoint from the one before and what the walk and the packing saw. It holds
// exactly what the checkpoint holds. Rows stay in their order, so that nearly all of them are copied at one go; the
// children of a directory that was read anew move to the end together. Pure.
import type { CapturedItem } from "./capture-item.ts";
import type { Packed } from "./pack.ts";
import { baseName, type StatCache, TYPE_CODES } from "./stat-cache.ts";
import { createStatCacheBuilder } from "./stat-cache-builder.ts";
import type { Survey } from "./survey.ts";
import type { Found, Walk } from "./walk.ts";

/** Files written this short before the scan could change again without their stat showing it. */
const RACY_MS = 2000;

export function buildCache(found: Survey, packed: Packed, manifest: string): StatCache {
  const { walk, cache, scanStartMs, sources } = found;
  const items = walk.found.map((each) => freshItem(found, packed, each));
  const { kept, keptRows } = decideKept(found, items);

  // New places: first of what stays at its row, then of what moves to the end.
  const rows = keptRows.length;
  const rowOf = new Uint32Array(rows + 1);
  for (let row = 0; row < rows; row += 1) rowOf[row + 1] = rowOf[row]! + keptRows[row]!;
  const placeOf = new Uint32Array(walk.found.length);
  const isPlaced = new Uint8Array(walk.found.length);
  for (let row = 0; row < rows; row += 1) {
    const place = walk.places[row]!;
    if (place === 0) continue;
    isPlaced[place - 1] = 1;
    placeOf[place - 1] = rowOf[row]!;
  }
  let end = rowOf[rows]!;
  for (let i = 0; i < placeOf.length; i += 1) {
    if (isPlaced[i]) continue;
    placeOf[i] = end;
    end += kept[i]!;
  }

  const builder = createStatCacheBuilder(end);
  for (let row = 0; row < rows; row += 1) {
    const from = row;
    while (row < rows && keptRows[row]) row += 1;
    if (row > from) builder.copy(rowOf[from]!, cache!, from, row - from);
  }
  const setRowChildren = (at: number, row: number) => {
    const first = cache!.firstChild[row]!;
    const count = cache!.childCount[row]!;
    const left = rowOf[first + count]! - rowOf[first]!;
    builder.setChildren(at, left === 0 ? 0 : rowOf[first]!, left, left === count);
  };
  for (let row = 0; row < rows; row += 1)
    if (keptRows[row] && cache!.types[row] === TYPE_CODES.directory) setRowChildren(rowOf[row]!, row);
  for (let i = 0; i < walk.found.length; i += 1) {
    if (!kept[i]) continue;
    const { path, row, type } = walk.found[i]!;
    const item = items[i];
    if (item !== undefined)
      builder.set(placeOf[i]!, baseName(path), {
        ...item,
        // The stat of a live database says nothing about the copy that stands for it.
        racy: item.torn !== undefined || sources.has(path) || !(item.mark.ctimeMs < scanStartMs - RACY_MS),
      });
    else if (!isPlaced[i]) builder.copy(placeOf[i]!, cache!, row, 1);
    if (type === "directory" && row >= 0) setRowChildren(placeOf[i]!, row);
    else builder.setChildren(placeOf[i]!, 0, 0, true);
  }
  for (const { directory, first, count, complete } of walk.runs) {
    if (!kept[directory]) continue;
    let left = 0;
    for (let i = first; i < first + count; i += 1) left += kept[i]!;
    builder.setChildren(
      placeOf[directory]!,
      left === 0 ? 0 : placeOf[first]!,
      left,
      complete && left === count,
    );
  }
  return builder.finish(manifest, found.rules);
}

/** What the packing or the closer look learnt of a path. */
function freshItem({ sources, refreshed }: Survey, packed: Packed, found: Found): CapturedItem | undefined {
  const { path, unchanged, inode } = found;
  // A lookup by path costs half a microsecond: none for what has one name, is unchanged and was not copied by SQLite.
  if (unchanged && inode === undefined && (sources.size === 0 || !sources.has(path))) return undefined;
  return packed.captured.get(path) ?? refreshed.get(path);
}

/** Which of the found, and which rows, are in the checkpoint: what stands below a lost directory is lost with it. */
function decideKept(
  { walk, cache, removed: removedPaths }: Survey,
  items: readonly (CapturedItem | undefined)[],
): { kept: Uint8Array; keptRows: Uint8Array } {
  const removed = new Set(removedPaths);
  const kept = new Uint8Array(walk.found.length);
  const lost: number[] = [];
  for (const [i, { path, unchanged, type }] of walk.found.entries()) {
    const isGone = removed.size > 0 && removed.has(path);
    kept[i] = items[i] !== undefined || (unchanged && !isGone) ? 1 : 0;
    if (!kept[i] && type === "directory") lost.push(i);
  }
  const keptRows = Uint8Array.from(walk.still);
  if (lost.length > 0) dropBelow(walk, cache, lost, kept, keptRows);
  for (let row = 0; row < keptRows.length; row += 1) {
    const place = walk.places[row]!;
    if (place > 0) keptRows[row] = kept[place - 1]!;
  }
  return { kept, keptRows };
}

function dropBelow(
  walk: Walk,
  cache: StatCache | undefined,
  lost: readonly number[],
  kept: Uint8Array,
  keptRows: Uint8Array,
): void {
  const runOf = new Map(walk.runs.map((run) => [run.directory, run]));
  const dropFound = (i: number) => {
    kept[i] = 0;
    const { type, row } = walk.found[i]!;
    if (type !== "directory") return;
    const run = runOf.get(i);
    if (run === undefined) dropRows(row);
    else for (let child = run.first; child < run.first + run.count; child += 1) dropFound(child);
  };
  const dropRows = (directory: number) => {
    if (directory < 0) return;
    const first = cache!.firstChild[directory]!;
    for (let row = first; row < first + cache!.childCount[directory]!; row += 1) {
      keptRows[row] = 0;
      const place = walk.places[row]!;
      if (place > 0) dropFound(place - 1);
      else if (cache!.types[row] === TYPE_CODES.directory) dropRows(row);
    }
  };
  for (const i of lost) dropFound(i);
}
