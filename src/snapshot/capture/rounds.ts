// Captures a cell that may change during the capture, in rounds: each one surveys and packs what differs from the round before, until
// nothing moved during a round. Git objects that refs may need and that appeared since are added by rounds that look at
// nothing else. What still moves in the last one is reported as a flaw (INV-6). A quiet cell takes one round.
import { crashPoint } from "../../platform/crash-point.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import type { Flaw } from "../model/entry.ts";
import { joinPath } from "../model/path-bytes.ts";
import { NOTHING_STORED, type Stored, storeLayers } from "../pack/layers.ts";
import type { CapturePool } from "../pack/pool.ts";
import { createMatcher } from "../path-patterns.ts";
import type { ChangedRows } from "../scan/changed-rows.ts";
import type { Survey } from "../scan/found.ts";
import { nextRows } from "../scan/next-rows.ts";
import { findMoved } from "./find-moved.ts";
import { findGitRaces, NO_RACES } from "./git-races.ts";
import { excludedPatterns, type Scan, type SurveyOptions, scanCell, surveyChanges } from "./survey.ts";

const MAX_ROUNDS = 3;

/** What all rounds stored, and the state of the cell in the last one. */
export interface Rounds {
  readonly survey: Survey;
  /** The rows of the checkpoint. */
  readonly rows: ChangedRows;
  readonly stored: Stored;
  readonly flaws: readonly Flaw[];
}

export interface RoundOptions {
  readonly checkpointId: string;
  readonly pool: CapturePool;
  /** What git wrote into the deferred directory since the first scan. */
  readonly written: readonly string[];
  /** Store only what was appended to a file, where that is all that changed. */
  readonly mayContinue: boolean;
}

/** `first` is the scan of the first round. Later ones walk the whole cell. */
export async function captureRounds(
  context: MissionContext,
  first: Scan,
  { checkpointId, pool, written, mayContinue }: RoundOptions,
): Promise<Rounds> {
  const isExcluded = createMatcher(excludedPatterns(context));
  const root = context.tree;
  let scan = first;
  let earlier: Stored = NOTHING_STORED;
  /** What the last walk of the whole cell found. */
  let flaws: readonly Flaw[] = [];
  let partialRounds = 0;
  for (let round = 1; ; round += 1) {
    // Names of hard-link groups are unique within a checkpoint.
    const groupPrefix = round === 1 ? checkpointId : `${checkpointId}-${round}`;
    const options = { groupPrefix, pool, written, mayContinue };
    const { survey, rows, stored, hasChanges } = await captureRound(context, scan, options);
    const all = addRound(earlier, stored, scan.isPartial);
    earlier = all;
    const races = hasChanges ? findGitRaces({ root, survey, stored, rows, isExcluded }) : NO_RACES;
    if (!scan.isPartial) {
      const captureMs = first.systemMs;
      const moved = [
        ...(hasChanges ? findMoved({ root, survey, stored, rows, isExcluded, captureMs }) : []),
        ...races.refs.map((path) => torn(path, REFS_MOVED)),
      ];
      if (moved.length > 0 && round < MAX_ROUNDS) {
        scan = scanCell(context, rows);
        continue;
      }
      flaws = [...survey.flaws, ...moved];
    }
    if (races.objects.length > 0 && partialRounds < MAX_ROUNDS) {
      partialRounds += 1;
      // Not the refs, which may be ahead of the objects again: an agent that never stops committing must be captured too.
      scan = scanCell(context, rows, { within: races.objects.map((path) => joinPath(path, "objects")) });
      continue;
    }
    const late = races.objects.map((path) => torn(path, OBJECTS_MOVED));
    return { survey, rows, stored: all, flaws: [...flaws, ...all.flaws, ...late] };
  }
}

const REFS_MOVED = "its refs were packed or renamed while it was captured, and some may be missing";
const OBJECTS_MOVED = "its objects were packed or removed while it was captured, and some may be missing";

function torn(path: string, reason: string): Flaw {
  return { path, kind: "torn", reason };
}

interface Round extends Omit<Rounds, "flaws"> {
  readonly hasChanges: boolean;
}

async function captureRound(
  context: MissionContext,
  scan: Scan,
  options: Omit<SurveyOptions, "scratch">,
): Promise<Round> {
  const { pool } = options;
  const surveyed = await surveyChanges(context, scan, { ...options, scratch: context.vault.scratch });
  crashPoint("snapshot.capture.surveyed");
  const hasChanges = surveyed.changed.length + surveyed.removed.length > 0;
  const stored = hasChanges ? await storeLayers(context, surveyed, pool) : NOTHING_STORED;
  // The memory of the workers is needed for what follows; another round rarely has so much to read.
  await pool[Symbol.asyncDispose]();
  const survey = { ...surveyed, sources: new Map([...surveyed.sources, ...stored.sources]) };
  return { survey, rows: nextRows(survey, stored), stored, hasChanges };
}

/**
 * Later rounds replace, remove or repeat what earlier ones stored, and look again at everything that had a flaw, unless
 * they are partial.
 */
function addRound(earlier: Stored, stored: Stored, isPartial: boolean): Stored {
  if (earlier.layers.length === 0 && !isPartial) return stored;
  const captured = new Map<string, CapturedItem>(earlier.captured);
  for (const path of stored.removed) captured.delete(path);
  for (const [path, item] of stored.captured) captured.set(path, item);
  // Only what cannot be saved exactly has the same flaw when it is not read again.
  const lasting = earlier.flaws.filter(
    ({ path, kind }) =>
      isPartial || (kind === "degraded" && captured.has(path) && !stored.captured.has(path)),
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
