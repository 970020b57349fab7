// The first look at a cell, with nothing to compare it with: everything is new. Nobody waits here. What can be stored is
// handed on while the walk goes on, and git, which takes half a second for a large worktree, is waited for only when all
// the rest is stored; its own directory comes last.
import { setImmediate } from "node:timers/promises";
import type { MissionContext } from "../mission-context.ts";
import type { Flaw } from "../model/entry.ts";
import { copyDatabases } from "../pack/copy-databases.ts";
import { isLarge } from "../pack/pack.ts";
import type { BegunLayer } from "../pack/pack-ahead.ts";
import { isSidecar } from "../pack/sqlite-backup.ts";
import { orderItems, sortSuspects, toItem } from "../scan/classify.ts";
import type { Found, Walk, Walker } from "../scan/walk.ts";
import { createSecretMatcher } from "../settings.ts";
import type { LateSurvey, Survey, SurveyOptions } from "./survey.ts";

/** Looked at in one go, about 10 ms: what the threads have done is taken in between. */
const AT_ONCE = 1000;

export async function surveyFirst(
  context: MissionContext,
  options: SurveyOptions,
  walker: Walker,
  known: Pick<Survey, "rules" | "scanStartMs">,
): Promise<Survey> {
  const { walk, held, begun } = await walkAndHandOn(context, options, walker);
  const meanwhile = options.meanwhile?.(walk);
  // Whoever calls `late` hears of it; a failure before that must not end the process.
  meanwhile?.catch(() => {});
  const sources = new Map<string, string>();
  const sort = async (found: Found[], groupPrefix: string, flaws: Flaw[]) => {
    const some = { ...walk, found };
    const folded = await copyDatabases(context, some, undefined, options.scratch, sources, flaws);
    const sorted = sortSuspects({ walk: some, cache: undefined, sources, folded, groupPrefix });
    return orderItems(sorted.certain, sorted.certainGroups);
  };
  const flaws = [...walk.flaws];
  const [deferred] = walk.deferred;
  // A file may have one name in the directory that comes last, and another one outside.
  const isLate = ({ inode }: Found) => deferred !== undefined && inode !== undefined;
  const waiting = hasAllNames(held) ? [] : held.filter(isLate);
  const now = waiting.length === 0 ? held : held.filter((found) => !isLate(found));
  const changed = await sort(now, options.groupPrefix, flaws);
  const late = async (): Promise<LateSurvey> => {
    await meanwhile;
    const count = walk.found.length;
    const said = walk.flaws.length;
    walker.resume(deferred!);
    const lateFlaws = walk.flaws.slice(said);
    const directory = walk.found.find(({ path }) => path === deferred)!;
    const found = [directory, ...waiting, ...walk.found.slice(count)];
    const items = await sort(found, `${options.groupPrefix}:late`, lateFlaws);
    for (const item of items) changed.push(item);
    return { items, flaws: lateFlaws };
  };
  if (deferred === undefined) await meanwhile;
  return {
    ...known,
    cache: undefined,
    walk,
    changed,
    refreshed: new Map(),
    removed: [],
    removedDirectories: new Set(),
    flaws,
    sources,
    ...(begun === undefined ? {} : { begun }),
    ...(deferred === undefined ? {} : { late }),
  };
}

interface HandedOn {
  readonly walk: Walk;
  readonly begun: BegunLayer | undefined;
  /** What was not handed on, but for the deferred directory. */
  readonly held: Found[];
}

async function walkAndHandOn(
  context: MissionContext,
  options: SurveyOptions,
  walker: Walker,
): Promise<HandedOn> {
  const isSecret = createSecretMatcher(context.settings.secrets);
  const held: Found[] = [];
  const walk = walker.result;
  const { found, runs } = walk;
  let begun: BegunLayer | undefined;
  let handedOn = 0;
  let looked = 0;
  // A directory stands right before what is in it, not among its siblings: tar sets its time and mode, and takes the right
  // to write there, as soon as something outside of it comes.
  const handOn = (layer: BegunLayer) => {
    for (; handedOn < runs.length; handedOn += 1) {
      const { directory, first, count } = runs[handedOn]!;
      offer(found[directory]!, true, layer, held);
      const children = found.slice(first, first + count);
      const isQuiet = !children.some(({ path }) => isSidecar(path));
      for (const child of children) {
        if (child.type === "directory") continue;
        offer(child, isQuiet && child.nlink === 1 && !isSecret(child.path), layer, held);
      }
    }
  };
  const { begin } = options;
  const atOnce = Math.min(AT_ONCE, begin?.from ?? AT_ONCE);
  for (const _ of walker.steps()) {
    if (begin === undefined || found.length < Math.max(begin.from, looked + atOnce)) continue;
    looked = found.length;
    begun ??= begin.layer();
    handOn(begun);
    await setImmediate();
  }
  if (begun === undefined)
    return { walk, begun, held: found.filter(({ path }) => path !== walk.deferred[0]) };
  handOn(begun);
  return { walk, begun, held };
}

const NO_SOURCES: ReadonlyMap<string, string> = new Map();

function offer(found: Found, isPlain: boolean, layer: BegunLayer, held: Found[]): void {
  const item = isPlain ? toItem(found, NO_SOURCES) : undefined;
  if (item === undefined || isLarge(item)) held.push(found);
  else layer.add(item);
}

/** No file among these has a name elsewhere. */
function hasAllNames(found: readonly Found[]): boolean {
  const missing = new Map<string, number>();
  for (const { inode, nlink } of found)
    if (inode !== undefined) missing.set(inode, (missing.get(inode) ?? nlink) - 1);
  return [...missing.values()].every((count) => count === 0);
}
