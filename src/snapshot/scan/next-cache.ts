// Makes the stat cache that goes with a checkpoint from the one before and what the walk and the packing saw. It holds
// exactly what the checkpoint holds. Rows stay in their order, so that nearly all of them are copied at one go; the
// children of a directory that was read anew move to the end together. Pure.

import type { Survey } from "../capture/survey.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import type { Packed } from "../pack/pack.ts";
import { baseName, type StatCache, TYPE_CODES } from "./stat-cache.ts";
import { createStatCacheBuilder } from "./stat-cache-builder.ts";
import type { Found, Walk } from "./walk.ts";

/** Files written this short before the scan could change again without their stat showing it. */
const RACY_MS = 2000;

/** `items`: what was learnt of each that was found, as `freshItems` gives it. */
export function buildCache(
  found: Survey,
  items: readonly (CapturedItem | undefined)[],
  manifest: string,
): StatCache {
  const { walk, cache, scanStartMs, sources } = found;
  const { kept, keptRows } = decideKept(found, items);
  const segments = segmentsOf(keptRows);
  const staying = segments.at(-1)?.rank ?? 0;

  // New places: first of what stays at its row, then of what moves to the end.
  const placeOf = new Uint32Array(walk.found.length);
  let end = staying;
  for (const [i, slot] of walk.slots.entries()) {
    placeOf[i] = slot < 0 ? end : rankOf(segments, slot);
    if (slot < 0) end += kept[i]!;
  }

  const builder = createStatCacheBuilder(end);
  for (const { from, to } of segments) builder.copy(cache!, from, to - from);
  // The stat of a live database says nothing about the copy that stands for it.
  const isRacy = (item: CapturedItem, path: string) =>
    item.torn !== undefined || sources.has(path) || !(item.mark.ctimeMs < scanStartMs - RACY_MS);
  for (const [i, { path, row }] of walk.found.entries()) {
    if (!kept[i] || walk.slots[i]! >= 0) continue;
    const item = items[i];
    if (item === undefined) builder.copy(cache!, row, 1);
    else builder.add(baseName(path), item, isRacy(item, path));
  }

  const setRowChildren = (at: number, row: number) => {
    const first = cache!.firstChild[row]!;
    const count = cache!.childCount[row]!;
    const start = rankOf(segments, first);
    const left = rankOf(segments, first + count) - start;
    builder.setChildren(at, left === 0 ? 0 : start, left, left === count);
  };
  // Up to the first row that goes, all children stand where they stood.
  const hole = segments[0]?.from === 0 ? segments[0].to : 0;
  for (const row of directoriesOf(cache)) {
    if (keptRows[row] && cache!.firstChild[row]! + cache!.childCount[row]! > hole)
      setRowChildren(rankOf(segments, row), row);
  }
  for (const [i, { path, row, type }] of walk.found.entries()) {
    if (!kept[i]) continue;
    const isPlaced = walk.slots[i]! >= 0;
    if (isPlaced && items[i] !== undefined)
      builder.replace(placeOf[i]!, baseName(path), items[i]!, isRacy(items[i]!, path));
    if (type !== "directory" || row < 0) builder.setChildren(placeOf[i]!, 0, 0, true);
    else if (!isPlaced) setRowChildren(placeOf[i]!, row);
  }
  for (const { directory, first, count, complete } of walk.runs) {
    if (!kept[directory]) continue;
    let left = 0;
    for (let i = first; i < first + count; i += 1) left += kept[i]!;
    const start = left === 0 ? 0 : placeOf[first]!;
    builder.setChildren(placeOf[directory]!, start, left, complete && left === count);
  }
  return builder.finish(manifest, found.rules);
}

/** Rows that stay and stand together; `rank` is how many rows stay up to the end of it. */
interface Segment {
  readonly from: number;
  readonly to: number;
  readonly rank: number;
}

function segmentsOf(keptRows: Uint8Array): Segment[] {
  const segments: Segment[] = [];
  let rank = 0;
  for (let from = keptRows.indexOf(1); from >= 0; ) {
    const gap = keptRows.indexOf(0, from);
    const to = gap < 0 ? keptRows.length : gap;
    rank += to - from;
    segments.push({ from, to, rank });
    from = gap < 0 ? -1 : keptRows.indexOf(1, gap);
  }
  return segments;
}

/** How many rows stay before this one. */
function rankOf(segments: readonly Segment[], row: number): number {
  let low = 0;
  let high = segments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (segments[middle]!.to <= row) low = middle + 1;
    else high = middle;
  }
  const before = low === 0 ? 0 : segments[low - 1]!.rank;
  const here = segments[low];
  return here === undefined || here.from >= row ? before : before + row - here.from;
}

function* directoriesOf(cache: StatCache | undefined): Generator<number> {
  if (cache === undefined) return;
  const { types } = cache;
  for (
    let row = types.indexOf(TYPE_CODES.directory);
    row >= 0;
    row = types.indexOf(TYPE_CODES.directory, row + 1)
  )
    yield row;
}

/** What the packing or the closer look learnt of each path that the walk found. */
export function freshItems(found: Survey, packed: Packed): (CapturedItem | undefined)[] {
  return found.walk.found.map((each) => freshItem(found, packed, each));
}

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
  const keptRows = walk.still.slice();
  if (lost.length > 0) dropBelow(walk, cache, lost, kept, keptRows);
  for (const [i, slot] of walk.slots.entries()) if (slot >= 0) keptRows[slot] = kept[i]!;
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
  const foundAt = new Map(walk.slots.map((slot, i) => [slot, i]));
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
      const place = foundAt.get(row);
      if (place !== undefined) dropFound(place);
      else if (cache!.types[row] === TYPE_CODES.directory) dropRows(row);
    }
  };
  for (const i of lost) dropFound(i);
}
