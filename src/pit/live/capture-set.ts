// Takes a checkpoint of a mission from what its watch reported. Order: take the set → capture → note the checkpoint as the
// base of the next set. What changes during the capture is for the next set; if the capture fails, the set is put back. A set
// is used only if nothing is missing between its base and now.
import type { MissionId } from "../../cell/mission-id.ts";
import type { DirtySet } from "../../snapshot/model/dirty-set.ts";
import type { CheckpointRef } from "../../snapshot/model/entry.ts";
import type { CheckpointOptions, CheckpointResult } from "../../snapshot/operations/checkpoint.ts";
import { hasManyLinked } from "../../snapshot/scan/stat-store.ts";
import { type LayerRef, readCheckpoint } from "../../snapshot/vault/manifest.ts";
import type { Vault } from "../../snapshot/vault/vault.ts";
import type { PitContext } from "../context.ts";
import { describeError } from "../describe.ts";
import type { TakenPaths, TreeWatcher } from "../watch/tree-watcher.ts";
import { findUnseen, type Unseen } from "./audit.ts";

/** What is remembered about a mission between two checkpoints. */
export interface SetState {
  /** Everything that changed since the scan of this checkpoint is in the watcher's set; undefined: not known. */
  base: string | undefined;
}

/** linked: the set, and the files that have names outside the cell; a walk where there are many of them. audit: a walk whose result is compared with the set. */
export type SurveyKind = "set" | "linked" | "walk" | "audit";

/** Looking at more files than this, one by one, costs more than a walk, and more memory than the pit should need. */
const MAX_LINKED = 1000;

export interface SetOptions extends CheckpointOptions {
  readonly survey: SurveyKind;
  /** Called as soon as the set has been taken, before anything else can be reported. */
  onTaken(): void;
}

export interface SetCapture {
  readonly result: CheckpointResult;
  /** Only of an audit that had something to compare. */
  readonly unseen: Unseen | undefined;
}

export async function captureFromSet(
  context: PitContext,
  watcher: TreeWatcher,
  mission: MissionId,
  state: SetState,
  { survey, onTaken, ...options }: SetOptions,
): Promise<SetCapture> {
  const cell = context.openMission(mission);
  const taken = await watcher.take(mission);
  onTaken();
  const base = cell.vault.list().find(({ id }) => id === state.base);
  // Read before the capture, which may remove an old point.
  const before = survey === "audit" && base !== undefined ? layersOf(cell.vault, base) : undefined;
  const isFromSet =
    survey === "set" ||
    (survey === "linked" && !hasManyLinked(context.machine, cell.cacheDirectory, MAX_LINKED));
  const dirty = isFromSet && base !== undefined ? toDirtySet(taken, survey === "linked") : undefined;
  let result: CheckpointResult;
  try {
    result = await context.takeCheckpoint(mission, { ...options, dirty });
  } catch (error) {
    watcher.putBack(mission, taken);
    throw error;
  }
  state.base = result.ref.id;
  if (result.finished !== undefined)
    context.log(`${mission}: finished an interrupted restore of ${result.finished.target} first`);
  if (before === undefined) return { result, unseen: undefined };
  // What changed during the walk may be in the point already.
  const later = await watcher.take(mission);
  watcher.putBack(mission, later);
  const layers = { before, after: result.checkpoint.layers };
  try {
    return { result, unseen: findUnseen(cell, layers, [taken, later]) };
  } catch (error) {
    context.log(`${mission}: its watch was not checked: ${describeError(error)}`);
    return { result, unseen: undefined };
  }
}

/** Undefined when it cannot be read: then there is nothing to compare with. */
function layersOf(vault: Vault, ref: CheckpointRef): readonly LayerRef[] | undefined {
  try {
    return readCheckpoint(vault, ref).layers;
  } catch {
    return undefined;
  }
}

/** Undefined: unknown. */
function toDirtySet({ unknown, paths, trees }: TakenPaths, withLinked: boolean): DirtySet | undefined {
  return unknown === null ? { paths: new Set(paths), trees: new Set(trees), withLinked } : undefined;
}
