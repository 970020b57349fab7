// Finds how a cell differs from the last checkpoint: a walk, or a look at what may have changed, then a hash of the files whose
// stat changed. Databases in use are copied through SQLite first. Writes nothing but those copies.
import { hash } from "node:crypto";
import { realpathSync } from "node:fs";
import { systemClock } from "../../platform/clock.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import { outsidePaths, type TreeRoot } from "../model/cell-tree.ts";
import type { DirtySet } from "../model/dirty-set.ts";
import { comparePaths } from "../model/path-bytes.ts";
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
import { orderItems, sameEntry, sortSuspects, type Unit } from "../scan/classify.ts";
import type { Survey, Walk } from "../scan/found.ts";
import { findMappedFiles } from "../scan/mapped-files.ts";
import { entryOf } from "../scan/stat-row.ts";
import { pathsBelow, type StatRows } from "../scan/stat-rows.ts";
import { createWalker, type Walker } from "../scan/walk.ts";

/** A scan of the cell that is complete except for a deferred directory. */
export interface Scan {
  readonly rows: StatRows;
  readonly walker: Walker;
  readonly walk: Walk;
  /** Digest of the exclude patterns. */
  readonly rules: string;
  /** When the walk started: later changes may have been missed. */
  readonly startMs: number;
  /** When the walk started, by the clock that file systems use. */
  readonly systemMs: number;
  /** Only new names in some directories were looked for. */
  readonly isPartial: boolean;
  /** Inodes of files that may change without a change in their stat. */
  readonly mapped: ReadonlySet<number>;
  /** When these were looked for, by the clock that file systems use. */
  readonly mappedSinceMs: number;
}

/** The exclude patterns of a cell, those of Lazarus itself included. */
export function excludedPatterns({ settings }: Pick<MissionContext, "settings">): string[] {
  return [OWN_NAMES, ...settings.exclude];
}

/**
 * Points from a dirty set can be seconds apart, and mappings usually last longer. A mapping made after the last look changes the
 * stat of its file with its first write; the row is then racy until the file is saved after another look.
 */
const MAPPED_AGE_MS = 10_000;

export interface ScanOptions {
  /** A directory that `surveyChanges` scans. */
  readonly defer?: string | undefined;
  /** Look only at what may have changed since the rows were written. */
  readonly dirty?: DirtySet | undefined;
  /** Look only for new names in these directories, and below them. */
  readonly within?: readonly string[];
}

export function scanCell(
  context: MissionContext,
  rows: StatRows,
  { defer, dirty, within }: ScanOptions = {},
): Scan {
  const startMs = context.machine.clock.nowMs();
  const systemMs = systemClock.nowMs();
  const patterns = excludedPatterns(context);
  const rules = hash("sha256", JSON.stringify(patterns));
  // After the time was taken, before anything is read: a later mapping changes the stat of what it writes to.
  const roots = [realpathSync(context.cellRoot), ...outsidePaths(context.tree)];
  const look = findMappedFiles(roots, dirty === undefined ? {} : { maxAgeMs: MAPPED_AGE_MS });
  const mapped = look.inodes;
  // Files that changed within the tick before a new look are racy in any case.
  const mappedSinceMs = look.sinceMs - (look.isNew ? 0 : TICK_MS);
  const isExcluded = createMatcher(patterns);
  const walker = createWalker({ root: context.tree, rows, isExcluded, rules, mapped, defer });
  const isPartial = within !== undefined;
  // Under other patterns, any path may have to be added or left out.
  const candidates = isPartial
    ? directoriesWithin(rows, within)
    : dirty !== undefined && rules === rows.rules
      ? withDoubtfulRows(dirty, rows, mapped)
      : undefined;
  const walk = candidates === undefined ? walker.walk() : walker.look(candidates);
  return { rows, walker, walk, rules, startMs, systemMs, isPartial, mapped, mappedSinceMs };
}

/** What no watcher sees: rows whose stat proves nothing, and paths that could not be captured last time. */
function withDoubtfulRows(
  { paths, trees, withLinked = false }: DirtySet,
  rows: StatRows,
  mapped: ReadonlySet<number>,
): DirtySet {
  const written = [...mapped].flatMap((inode) => rows.namesOf(inode));
  const linked = withLinked ? rows.linked() : [];
  return { paths: new Set([...paths, ...rows.racy(), ...rows.skipped, ...written, ...linked]), trees };
}

function directoriesWithin(rows: StatRows, directories: readonly string[]): DirtySet {
  const isDirectory = (path: string) => rows.stat(path)?.type === "directory";
  const below = directories.flatMap((path) => [path, ...pathsBelow(rows, path)]);
  return { paths: new Set(below.filter(isDirectory)), trees: new Set() };
}

export interface SurveyOptions {
  /** Directory for copies of databases. */
  readonly scratch: string;
  /** Prefix of the names of new hard-link groups. */
  readonly groupPrefix: string;
  readonly pool: CapturePool;
  /** What git wrote into the deferred directory since the scan. */
  readonly written?: readonly string[];
  /** Store only what was appended to a file, where that is all that changed. */
  readonly mayContinue?: boolean;
}

export async function surveyChanges(
  { tree }: MissionContext,
  scan: Scan,
  options: SurveyOptions,
): Promise<Survey> {
  const { rows, walk, walker, rules, startMs, systemMs, mapped, mappedSinceMs, isPartial } = scan;
  walker.resume(options.written ?? []);
  const { copies, folded } = await copyDatabasesInUse(tree, walk, options.scratch);
  const early = sourcesOf(copies);
  walker.reveal(early.keys());
  const { groupPrefix, mayContinue = false } = options;
  const suspects = sortSuspects({ walk, rows, sources: early, folded, groupPrefix, mayContinue });
  const compared = await compareContent(tree, suspects.doubtful, rows, options);
  const known = [...folded].filter((path) => rows.stat(path) !== undefined);
  const gone = new Map([...walk.gone, ...known.map((path) => [path, false] as const)]);
  const allCopies = [...copies, ...compared.copies];
  return {
    rows,
    walk,
    rules,
    scanStartMs: startMs,
    namesSinceMs: systemMs - TICK_MS,
    mapped,
    mappedSinceMs,
    isPartial,
    changed: orderItems(suspects.certain, [...suspects.certainGroups, ...compared.changed]),
    refreshed: compared.refreshed,
    removed: [...gone.keys()].sort(comparePaths),
    removedDirectories: new Set([...gone].filter(([, wasDirectory]) => wasDirectory).map(([path]) => path)),
    flaws: [...walk.flaws.values(), ...flawsOf(allCopies)],
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
  rows: StatRows,
  { pool, scratch }: SurveyOptions,
): Promise<Comparison> {
  const changed: Unit[] = [];
  const refreshed = new Map<string, CapturedItem>();
  const copies: DatabaseCopy[] = [];
  if (doubtful.length === 0) return { changed, refreshed, copies };
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
    } else if (seen !== undefined && isSame(unit, seen, rows)) {
      for (const item of unit.items)
        refreshed.set(item.path, { ...seen, entry: { ...seen.entry, path: item.path } });
      // A path that has just vanished is packed too: packing stats it again and handles what depends on it.
    } else changed.push(unit);
  }
  return { changed, refreshed, copies };
}

function isSame(unit: Unit, seen: CapturedItem, rows: StatRows): boolean {
  if (seen.torn !== undefined) return false;
  return unit.members.every(({ path }) => {
    const row = rows.entry(path);
    return row !== undefined && sameEntry(entryOf(row, path), { ...seen.entry, path });
  });
}
