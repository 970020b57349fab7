// Captures a cell that may change meanwhile, in rounds: each one surveys and packs what differs from the round before, until
// nothing moved during a round. What still moves in the last one is named as a flaw (INV-6). A quiet cell takes one round.
import { crashPoint } from "../../platform/crash-point.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import type { Flaw } from "../model/entry.ts";
import { NOTHING_STORED, type Stored, storeLayers } from "../pack/layers.ts";
import type { CapturePool } from "../pack/pool.ts";
import { createMatcher } from "../path-patterns.ts";
import type { Survey } from "../scan/found.ts";
import { buildCache, type FreshItems, freshItems } from "../scan/next-cache.ts";
import type { StatCache } from "../scan/stat-cache.ts";
import { findMoved } from "./settle.ts";
import { excludedPatterns, type Scan, scanCell, surveyChanges } from "./survey.ts";

const MAX_ROUNDS = 3;

/** What all rounds stored, and the cell as the last one saw it. */
export interface Rounds {
  readonly survey: Survey;
  readonly fresh: FreshItems;
  /** The stat cache of the checkpoint; the name of its manifest is not known yet. */
  readonly cache: StatCache;
  readonly stored: Stored;
  readonly flaws: readonly Flaw[];
}

export interface RoundOptions {
  readonly checkpointId: string;
  readonly pool: CapturePool;
}

/** `first` is the walk of the first round. */
export async function captureRounds(
  context: MissionContext,
  first: Scan,
  { checkpointId, pool }: RoundOptions,
): Promise<Rounds> {
  const isExcluded = createMatcher(excludedPatterns(context));
  let scan = first;
  let earlier: Stored = NOTHING_STORED;
  for (let round = 1; ; round += 1) {
    // Names of hard-link groups are unique within a checkpoint.
    const groupPrefix = round === 1 ? checkpointId : `${checkpointId}-${round}`;
    const surveyed = await surveyChanges(context, scan, {
      scratch: context.vault.scratch,
      groupPrefix,
      pool,
    });
    crashPoint("snapshot.capture.surveyed");
    const hasChanges = surveyed.changed.length + surveyed.removed.length > 0;
    const stored = hasChanges ? await storeLayers(context, surveyed, pool) : NOTHING_STORED;
    const survey = { ...surveyed, sources: new Map([...surveyed.sources, ...stored.sources]) };
    const fresh = freshItems(survey, stored.captured);
    const isSame = scan.cache !== undefined && !hasChanges && survey.refreshed.size === 0;
    const cache = isSame ? scan.cache! : buildCache(survey, fresh, "");
    const all = addRound(earlier, stored);
    const moved = hasChanges
      ? findMoved({
          root: context.cellRoot,
          survey,
          stored,
          cache,
          isExcluded,
          captureMs: first.systemMs,
        })
      : [];
    if (moved.length === 0 || round === MAX_ROUNDS)
      return { survey, fresh, cache, stored: all, flaws: [...survey.flaws, ...all.flaws, ...moved] };
    earlier = all;
    scan = scanCell(context, cache);
  }
}

/** Later rounds replace, remove or repeat what earlier ones stored, and look again at everything that had a flaw. */
function addRound(earlier: Stored, stored: Stored): Stored {
  if (earlier.layers.length === 0) return stored;
  const captured = new Map<string, CapturedItem>(earlier.captured);
  for (const path of stored.removed) captured.delete(path);
  for (const [path, item] of stored.captured) captured.set(path, item);
  // Only what cannot be saved exactly has the same flaw when it is not read again.
  const lasting = earlier.flaws.filter(
    ({ path, kind }) => kind === "degraded" && captured.has(path) && !stored.captured.has(path),
  );
  return {
    layers: [...earlier.layers, ...stored.layers],
    captured,
    missed: stored.missed,
    removed: [...earlier.removed, ...stored.removed],
    flaws: [...lasting, ...stored.flaws],
    sources: stored.sources,
  };
}
