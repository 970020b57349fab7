// Looks at a cell and says how it differs from the last checkpoint: one walk, then a closer look at what stat calls
// changed. Databases in use are copied through SQLite first. Writes nothing but those copies.
import { hash } from "node:crypto";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem, CaptureItem, HashTask } from "../model/capture-item.ts";
import type { Flaw } from "../model/entry.ts";
import { copyDatabase, copyDatabases } from "../pack/copy-databases.ts";
import type { BegunLayer } from "../pack/pack-ahead.ts";
import { runTasks } from "../pack/pool.ts";
import { goneFromRows, orderItems, sameEntry, sortSuspects, type Unit } from "../scan/classify.ts";
import type { Probers } from "../scan/probe.ts";
import { cachedEntry, type StatCache } from "../scan/stat-cache.ts";
import { createWalker, type Walk } from "../scan/walk.ts";
import { createMatcher } from "../settings.ts";
import { surveyFirst } from "./first-survey.ts";

export interface Survey {
  readonly cache: StatCache | undefined;
  readonly walk: Walk;
  /** A digest of the patterns that nothing here matches. */
  readonly rules: string;
  /** When the walk began: what changed after it may have been missed. */
  readonly scanStartMs: number;
  /** To be stored anew, in layer order. */
  readonly changed: CaptureItem[];
  /** Looked changed and is not: what its stat says now. */
  readonly refreshed: Map<string, CapturedItem>;
  /** Was there and is not, in path order. */
  readonly removed: string[];
  /** Those of them that were directories. */
  readonly removedDirectories: ReadonlySet<string>;
  readonly flaws: Flaw[];
  /** Databases in use, by path, and where to read them: a copy, or the file itself where SQLite could not make one. */
  readonly sources: Map<string, string>;
  /** The layer in which a part of it is already; it is not among the changed. */
  readonly begun?: BegunLayer;
  /** Set when the deferred directory was not waited for: to be called once, when everything else is stored. */
  readonly late?: () => Promise<LateSurvey>;
}

/** What stands in the deferred directory; it is in the walk and among the changed now. */
export interface LateSurvey {
  readonly items: readonly CaptureItem[];
  readonly flaws: readonly Flaw[];
}

export interface SurveyOptions {
  readonly cache: StatCache | undefined;
  /** Where copies of databases go. */
  readonly scratch: string;
  readonly groupPrefix: string;
  /** A directory to walk last, after `meanwhile` has been done with what is known of the rest. */
  readonly defer?: string | undefined;
  readonly meanwhile?: ((walk: Walk) => Promise<void>) | undefined;
  readonly probers?: Probers | undefined;
  /** A first walk that has found so many paths hands on what is plain at once, to be stored in this layer. */
  readonly begin?: { readonly from: number; readonly layer: () => BegunLayer } | undefined;
}

/** Names that Lazarus itself uses beside a cell's content. */
export const OWN_NAMES = ".lazarus-*";

export async function survey(context: MissionContext, options: SurveyOptions): Promise<Survey> {
  const { cache } = options;
  const scanStartMs = context.machine.clock.nowMs();
  const excluded = [OWN_NAMES, ...context.settings.exclude];
  const rules = hash("sha256", JSON.stringify(excluded));
  const walker = createWalker({
    root: context.cellRoot,
    cache,
    isExcluded: createMatcher(excluded),
    rules,
    ...(options.defer === undefined ? {} : { defer: new Set([options.defer]) }),
    probers: options.probers,
  });
  if (cache === undefined) return surveyFirst(context, options, walker, { rules, scanStartMs });
  const walk = walker.walk();
  await options.meanwhile?.(walk);
  for (const path of walk.deferred) walker.resume(path);
  const flaws: Flaw[] = [...walk.flaws];
  const sources = new Map<string, string>();
  const folded = await copyDatabases(context, walk, cache, options.scratch, sources, flaws);
  walker.wake(sources.keys());
  const { certain, certainGroups, doubtful } = sortSuspects({
    walk,
    cache,
    sources,
    folded,
    groupPrefix: options.groupPrefix,
  });
  const removedRows = [
    ...walk.gone,
    ...walk.found
      .filter(({ path, row }) => folded.size > 0 && row >= 0 && folded.has(path))
      .map(({ row }) => row),
  ];
  const gone = goneFromRows(cache, removedRows);
  const judged = await judge(context, doubtful, cache, sources, options.scratch, flaws);
  return {
    cache,
    walk,
    rules,
    scanStartMs,
    changed: orderItems(certain, [...certainGroups, ...judged.changed]),
    refreshed: judged.refreshed,
    removed: gone.map(({ path }) => path),
    removedDirectories: new Set(gone.filter(({ wasDirectory }) => wasDirectory).map(({ path }) => path)),
    flaws,
    sources,
  };
}

const ITEMS_PER_TASK = 256;

interface Judgement {
  readonly changed: Unit[];
  readonly refreshed: Map<string, CapturedItem>;
}

/** The closer look: hashes what stat doubts, and sorts it into changed and the same. */
async function judge(
  context: MissionContext,
  doubtful: readonly Unit[],
  cache: StatCache | undefined,
  sources: Map<string, string>,
  scratch: string,
  flaws: Flaw[],
): Promise<Judgement> {
  const judgement: Judgement = { changed: [], refreshed: new Map() };
  if (cache === undefined || doubtful.length === 0) return judgement;
  const leaders = doubtful.map((unit) => unit.items[0]!);
  const seen = new Map<string, CapturedItem>();
  const missed = new Map<string, string>();
  const tasks: (HashTask & { codec: "gzip" })[] = [];
  for (let at = 0; at < leaders.length; at += ITEMS_PER_TASK) {
    tasks.push({
      kind: "hash",
      codec: "gzip",
      root: context.cellRoot,
      items: leaders.slice(at, at + ITEMS_PER_TASK),
    });
  }
  const totalBytes = leaders.reduce((sum, item) => sum + (item.type === "file" ? item.size : 0), 0);
  await runTasks(tasks, { totalBytes }, (result) => {
    for (const item of result.captured) seen.set(item.entry.path, item);
    for (const item of result.missed) missed.set(item.path, item.why);
  });
  for (const unit of doubtful) {
    const leader = unit.items[0]!;
    // What vanished just now goes to the packing, which looks once more and knows what depends on it.
    if (missed.get(leader.path) === "database")
      judgement.changed.push(await fromCopy(context, unit, sources, scratch, flaws));
    else if (isSame(unit, seen.get(leader.path), cache)) {
      for (const item of unit.items)
        judgement.refreshed.set(item.path, renamed(seen.get(leader.path)!, item.path));
    } else judgement.changed.push(unit);
  }
  return judgement;
}

async function fromCopy(
  context: MissionContext,
  unit: Unit,
  sources: Map<string, string>,
  scratch: string,
  flaws: Flaw[],
): Promise<Unit> {
  const [leader, ...rest] = unit.items;
  await copyDatabase(context, leader!.path, sources, scratch, flaws);
  return { members: unit.members, items: [{ ...leader!, source: sources.get(leader!.path)! }, ...rest] };
}

function isSame(unit: Unit, seen: CapturedItem | undefined, cache: StatCache): boolean {
  if (seen === undefined || seen.torn !== undefined) return false;
  return unit.members.every(({ row, path }) =>
    sameEntry(cachedEntry(cache, row, path).entry, { ...seen.entry, path }),
  );
}

function renamed(item: CapturedItem, path: string): CapturedItem {
  return { ...item, entry: { ...item.entry, path } };
}
