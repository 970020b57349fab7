// Builds the stat cache of a checkpoint from the previous one and from what the walk and the packing saw. It holds
// exactly what the checkpoint holds. Rows keep their order, so that nearly all of them are copied in bulk; the children
// of a directory that was read again move to the end together. Pure. Live protection replaces the stat cache.
import type { CapturedItem } from "../model/capture-item.ts";
import type { Found, Survey, Walk } from "./found.ts";
import { baseName, type StatCache, TYPE_CODES } from "./stat-cache.ts";
import { createStatCacheBuilder, type StatCacheBuilder } from "./stat-cache-builder.ts";

/** A file written this shortly before the scan could change again without a change in its stat. */
const RACY_MS = 2000;

/** What hashing or packing found for each path in `walk.found`. */
export type FreshItems = readonly (CapturedItem | undefined)[];

export function freshItems(survey: Survey, captured: ReadonlyMap<string, CapturedItem>): FreshItems {
  const { walk, sources, refreshed } = survey;
  return walk.found.map(({ path, unchanged, inode }) => {
    // A lookup by path takes half a microsecond: skip it for unchanged paths with one name that SQLite did not copy.
    if (unchanged && inode === undefined && (sources.size === 0 || !sources.has(path))) return undefined;
    return captured.get(path) ?? refreshed.get(path);
  });
}

export function buildCache(survey: Survey, items: FreshItems, manifest: string): StatCache {
  const { walk, cache } = survey;
  const layout = planRows(survey, items);
  const { kept, keptRows, segments, placeOf } = layout;
  const builder = createStatCacheBuilder(layout.count);
  for (const { from, to } of segments) builder.copy(cache!, from, to - from);
  addMovedRows(builder, survey, items, kept);

  const copyChildren = (place: number, row: number) => {
    const first = cache!.firstChild[row]!;
    const count = cache!.childCount[row]!;
    const start = rankOf(segments, first);
    const left = rankOf(segments, first + count) - start;
    builder.setChildren(place, left === 0 ? 0 : start, left, left === count);
  };
  // Up to the first row that is dropped, all children keep their place.
  const firstGap = segments[0]?.from === 0 ? segments[0].to : 0;
  for (const row of directoryRows(cache)) {
    if (keptRows[row] && cache!.firstChild[row]! + cache!.childCount[row]! > firstGap)
      copyChildren(rankOf(segments, row), row);
  }
  for (const [i, { path, row, type }] of walk.found.entries()) {
    if (!kept[i]) continue;
    const keepsRow = walk.slots[i]! >= 0;
    const item = items[i];
    if (keepsRow && item !== undefined)
      builder.replace(placeOf[i]!, baseName(path), item, isRacy(survey, item, path));
    if (type !== "directory" || row < 0) builder.setChildren(placeOf[i]!, 0, 0, true);
    else if (!keepsRow) copyChildren(placeOf[i]!, row);
  }
  for (const { directory, first, count, complete } of walk.runs) {
    if (!kept[directory]) continue;
    let left = 0;
    for (let i = first; i < first + count; i += 1) left += kept[i]!;
    const start = left === 0 ? 0 : placeOf[first]!;
    builder.setChildren(placeOf[directory]!, start, left, complete && left === count);
  }
  return builder.finish(manifest, survey.rules);
}

/**
 * A database that was captured from a copy is racy, because its stat does not describe the copy; so is a directory whose
 * stat is newer than its names.
 */
function isRacy(survey: Survey, { entry, mark, torn }: CapturedItem, path: string): boolean {
  return (
    torn !== undefined ||
    survey.sources.has(path) ||
    survey.mapped.has(mark.ino) ||
    !(mark.ctimeMs < survey.scanStartMs - RACY_MS) ||
    (entry.type === "directory" && mark.ctimeMs >= survey.namesSinceMs)
  );
}

/** Where each row of the new cache comes from. */
interface Layout {
  /** 1 for each found path, and each cache row, that is in the checkpoint. */
  readonly kept: Uint8Array;
  readonly keptRows: Uint8Array;
  /** The kept rows, in ranges. */
  readonly segments: readonly Segment[];
  /** The new row of each found path: first those that keep their row, then those that move to the end. */
  readonly placeOf: Uint32Array;
  readonly count: number;
}

function planRows(survey: Survey, items: FreshItems): Layout {
  const { walk } = survey;
  const { kept, keptRows } = decideKept(survey, items);
  const segments = segmentsOf(keptRows);
  const placeOf = new Uint32Array(walk.found.length);
  let count = segments.at(-1)?.rank ?? 0;
  for (const [i, slot] of walk.slots.entries()) {
    placeOf[i] = slot < 0 ? count : rankOf(segments, slot);
    if (slot < 0) count += kept[i]!;
  }
  return { kept, keptRows, segments, placeOf, count };
}

function addMovedRows(builder: StatCacheBuilder, survey: Survey, items: FreshItems, kept: Uint8Array): void {
  const { walk, cache } = survey;
  for (const [i, { path, row }] of walk.found.entries()) {
    if (!kept[i] || walk.slots[i]! >= 0) continue;
    const item = items[i];
    if (item === undefined) builder.copy(cache!, row, 1);
    else builder.add(baseName(path), item, isRacy(survey, item, path));
  }
}

/** A range of kept rows; `rank` is the number of kept rows up to its end. */
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

/** How many kept rows precede this one. */
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

function* directoryRows(cache: StatCache | undefined): Generator<number> {
  if (cache === undefined) return;
  const { types } = cache;
  for (
    let row = types.indexOf(TYPE_CODES.directory);
    row >= 0;
    row = types.indexOf(TYPE_CODES.directory, row + 1)
  )
    yield row;
}

/** Everything below a directory that is not in the checkpoint is dropped with it. */
function decideKept(
  { walk, cache, removed: removedPaths }: Survey,
  items: FreshItems,
): { kept: Uint8Array; keptRows: Uint8Array } {
  const removed = new Set(removedPaths);
  const kept = new Uint8Array(walk.found.length);
  const lost: number[] = [];
  for (const [i, { path, unchanged, type }] of walk.found.entries()) {
    const isGone = removed.size > 0 && removed.has(path);
    kept[i] = items[i] !== undefined || (unchanged && !isGone) ? 1 : 0;
    if (!kept[i] && type === "directory") lost.push(i);
  }
  const keptRows = walk.unchangedRows.slice();
  if (lost.length > 0) dropBelow(walk, cache, lost, { kept, keptRows });
  for (const [i, slot] of walk.slots.entries()) if (slot >= 0) keptRows[slot] = kept[i]!;
  return { kept, keptRows };
}

function dropBelow(
  walk: Walk,
  cache: StatCache | undefined,
  lost: readonly number[],
  { kept, keptRows }: { kept: Uint8Array; keptRows: Uint8Array },
): void {
  const runOf = new Map(walk.runs.map((run) => [run.directory, run]));
  const foundAt = new Map(walk.slots.map((slot, i) => [slot, i]));
  const dropFound = (i: number) => {
    kept[i] = 0;
    const { type, row }: Found = walk.found[i]!;
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
