// Finds how a cell differs from the last checkpoint: one walk, then a hash of the files whose stat changed. Databases in
// use are copied through SQLite first. Writes nothing but those copies.
import { hash } from "node:crypto";
import { realpathSync } from "node:fs";
import { systemClock } from "../../platform/clock.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import { outsidePaths, type TreeRoot } from "../model/cell-tree.ts";
import { OWN_NAMES } from "../model/paths.ts";
import {
  copyDatabase,
  copyDatabasesInUse,
  type DatabaseCopy,
  flawsOf,
  sourcesOf,
} from "../pack/copy-databases.ts";
import { type CapturePool, hashItems } from "../pack/pool.ts";
import { TICK_MS } from "../pack/torn.ts";
import { createMatcher } from "../path-patterns.ts";
import { goneFromRows, orderItems, sameEntry, sortSuspects, type Unit } from "../scan/classify.ts";
import type { Survey, Walk } from "../scan/found.ts";
import { distrustMapped, findMappedFiles } from "../scan/mapped-files.ts";
import { cachedEntry, type StatCache } from "../scan/stat-cache.ts";
import { createWalker, type Walker } from "../scan/walk.ts";

/** A walk of the cell that is complete except for deferred directories. */
export interface Scan {
  readonly cache: StatCache | undefined;
  readonly walker: Walker;
  readonly walk: Walk;
  /** Digest of the exclude patterns. */
  readonly rules: string;
  /** When the walk started: later changes may have been missed. */
  readonly startMs: number;
  /** The same by the clock that file systems use. */
  readonly systemMs: number;
  /** Only new names in some directories were looked for. */
  readonly isPartial: boolean;
  /** Inodes of files that may change without a change in their stat. */
  readonly mapped: ReadonlySet<number>;
}

/** The exclude patterns of a cell, those of Lazarus itself included. */
export function excludedPatterns({ settings }: MissionContext): string[] {
  return [OWN_NAMES, ...settings.exclude];
}

export interface ScanOptions {
  /** A directory that `surveyChanges` walks. */
  readonly defer?: string | undefined;
  /** Look only for new names in these directories. */
  readonly within?: readonly string[];
}

export function scanCell(
  context: MissionContext,
  cache: StatCache | undefined,
  { defer, within }: ScanOptions = {},
): Scan {
  const startMs = context.machine.clock.nowMs();
  const systemMs = systemClock.nowMs();
  const patterns = excludedPatterns(context);
  const rules = hash("sha256", JSON.stringify(patterns));
  // After the time was taken, before anything is read: a later mapping changes the stat of what it writes to.
  const mapped = findMappedFiles([realpathSync(context.cellRoot), ...outsidePaths(context.tree)]);
  if (cache !== undefined) distrustMapped(cache, mapped);
  const walker = createWalker({
    root: context.tree,
    cache,
    isExcluded: createMatcher(patterns),
    rules,
    ...(defer === undefined ? {} : { defer: new Set([defer]) }),
    ...(within === undefined ? {} : { within }),
  });
  const isPartial = within !== undefined;
  return { cache, walker, walk: walker.walk(), rules, startMs, systemMs, isPartial, mapped };
}

export interface SurveyOptions {
  /** Directory for copies of databases. */
  readonly scratch: string;
  /** Prefix of the names of new hard-link groups. */
  readonly groupPrefix: string;
  readonly pool: CapturePool;
}

export async function surveyChanges(
  { tree }: MissionContext,
  scan: Scan,
  options: SurveyOptions,
): Promise<Survey> {
  const { cache, walk, walker, rules, startMs, systemMs, mapped } = scan;
  for (const path of walk.deferred) walker.resume(path);
  const { copies, folded } = await copyDatabasesInUse(tree, walk, cache, options.scratch);
  const early = sourcesOf(copies);
  walker.reveal(early.keys());
  const { groupPrefix } = options;
  const suspects = sortSuspects({ walk, cache, sources: early, folded, groupPrefix });
  const compared = await compareContent(tree, suspects.doubtful, cache, options);
  const foldedRows = walk.found
    .filter(({ path, row }) => folded.size > 0 && row >= 0 && folded.has(path))
    .map(({ row }) => row);
  const gone = cache === undefined ? [] : goneFromRows(cache, [...walk.gone, ...foldedRows]);
  const allCopies = [...copies, ...compared.copies];
  return {
    cache,
    walk,
    rules,
    scanStartMs: startMs,
    namesSinceMs: systemMs - TICK_MS,
    mapped,
    changed: orderItems(suspects.certain, [...suspects.certainGroups, ...compared.changed]),
    refreshed: compared.refreshed,
    removed: gone.map(({ path }) => path),
    removedDirectories: new Set(gone.filter(({ wasDirectory }) => wasDirectory).map(({ path }) => path)),
    flaws: [...walk.flaws, ...flawsOf(allCopies)],
    sources: sourcesOf(allCopies),
  };
}

interface Comparison {
  readonly changed: readonly Unit[];
  /** Files whose content is unchanged, with their current stat. */
  readonly refreshed: ReadonlyMap<string, CapturedItem>;
  readonly copies: readonly DatabaseCopy[];
}

/** Hashes known files whose stat changed, and separates those whose content changed. */
async function compareContent(
  tree: TreeRoot,
  doubtful: readonly Unit[],
  cache: StatCache | undefined,
  { pool, scratch }: SurveyOptions,
): Promise<Comparison> {
  const changed: Unit[] = [];
  const refreshed = new Map<string, CapturedItem>();
  const copies: DatabaseCopy[] = [];
  if (cache === undefined || doubtful.length === 0) return { changed, refreshed, copies };
  const leaders = doubtful.map((unit) => unit.items[0]!);
  const { captured, missed } = await hashItems(pool, tree, leaders);
  const inUse = new Set(missed.filter(({ why }) => why === "database").map(({ path }) => path));
  for (const unit of doubtful) {
    const [leader, ...links] = unit.items;
    const { path } = leader!;
    const seen = captured.get(path);
    if (inUse.has(path)) {
      const copy = await copyDatabase(tree, path, scratch);
      copies.push(copy);
      changed.push({ members: unit.members, items: [{ ...leader!, source: copy.source }, ...links] });
    } else if (seen !== undefined && isSame(unit, seen, cache)) {
      for (const item of unit.items)
        refreshed.set(item.path, { ...seen, entry: { ...seen.entry, path: item.path } });
      // A path that has just vanished is packed too: packing stats it again and handles what depends on it.
    } else changed.push(unit);
  }
  return { changed, refreshed, copies };
}

function isSame(unit: Unit, seen: CapturedItem, cache: StatCache): boolean {
  if (seen.torn !== undefined) return false;
  return unit.members.every(({ row, path }) =>
    sameEntry(cachedEntry(cache, row, path).entry, { ...seen.entry, path }),
  );
}
