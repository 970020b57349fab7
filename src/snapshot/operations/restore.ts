// Restores a mission's cell from its vault (INV-3). In place, the order of the lines is the promise: lock → finish what
// was interrupted → find and open the target → safety checkpoint → plan → stage and verify → journal → carry out. Until
// the journal is written nothing in the cell has changed. A cell that is gone is made beside and renamed into place.
import { existsSync, renameSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { isInside } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import { type CaptureResult, capture } from "../capture/capture.ts";
import { type MissionContext, realPlace } from "../mission-context.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { findCheckpoint } from "../model/find-checkpoint.ts";
import { OWN_NAMES } from "../model/paths.ts";
import { createMatcher } from "../path-patterns.ts";
import { withGoodCheckpointHint } from "../restore/damage-hint.ts";
import { writeJournal } from "../restore/journal.ts";
import { detectCapabilities } from "../restore/make-path.ts";
import { type Changes, isEmptyPlan, type PlanOptions, planRestore } from "../restore/plan.ts";
import {
  describePositionChanges,
  type FreshHeartbeat,
  findFreshHeartbeat,
} from "../restore/position-changes.ts";
import { applyJournal, type Restored } from "../restore/roll-forward.ts";
import { createScope, requireKnown, type Scope } from "../restore/scope.ts";
import {
  createTableReader,
  type OpenCheckpoint,
  openPair,
  openSource,
  type Source,
} from "../restore/source.ts";
import { removeStaging, stagePlan, stagingDirectory } from "../restore/stage.ts";
import { syncPaths } from "../restore/sync.ts";
import { type Checkpoint, readCheckpoint } from "../vault/manifest.ts";
import { listCurrent } from "./current-listing.ts";
import { lockVault } from "./lock.ts";
import { recordRestore } from "./record.ts";
import { fillDirectory, prepareDirectory, type RestoreIntoResult } from "./restore-into.ts";

/** Which checkpoint and paths to restore. */
export interface RestoreOptions {
  /** Id, beginning of one, `latest`, or a time; `latest` when absent. */
  readonly checkpoint?: string | undefined;
  /** Only these paths and what lies below them. */
  readonly paths?: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Who asked for the restore, for the event log, when it was not a user. */
  readonly by?: string;
}

/** What a restore changed, and its safety checkpoint. */
export interface RestoreResult {
  readonly target: CheckpointRef;
  /** The checkpoint of what was there; null when there was no cell. */
  readonly safety: CheckpointRef | null;
  readonly changes: Changes;
  /** What could not be restored exactly, or was set aside. */
  readonly flaws: readonly Flaw[];
  /** What the safety checkpoint could not save exactly. */
  readonly safetyFlaws: readonly Flaw[];
  /** What happens to flows and runs, in sentences. */
  readonly moves: readonly string[];
  /** Set when an agent may be at work in the cell. */
  readonly alive: FreshHeartbeat | undefined;
  /** A restore of earlier that had been interrupted and was finished first. */
  readonly finished: Restored | undefined;
}

/** Restores a cell to a checkpoint, after taking a safety checkpoint. */
export function restoreCell(context: MissionContext, options: RestoreOptions): Promise<RestoreResult> {
  return restoreTarget(context, () => find(context, options.checkpoint), { ...options, kind: "restore" });
}

/** `choose` is asked under the lock, when nothing interrupted is left. */
export async function restoreTarget(
  context: MissionContext,
  choose: () => CheckpointRef,
  options: Omit<RestoreOptions, "checkpoint"> & { readonly kind: "restore" | "undo" },
): Promise<RestoreResult> {
  // Taking the lock would make a vault for a mission that has none.
  if (context.vault.list().length === 0) find(context, undefined);
  using locked = await untouched(context, "", () => lockVault(context, `restore of ${context.mission}`));
  const { lock, finished } = locked;
  const { kind, by } = options;
  const target = choose();
  const scope = createScope(options.paths ?? [], context.cellRoot);
  const open = createTableReader(context.vault);
  const opened = await openTarget(context, target, open);
  if (!existsSync(context.cellRoot)) {
    const rebuilt = await withGoodCheckpointHint(context.vault, target, () =>
      rebuildCell(context, openSource(context.vault, opened), scope, options.signal),
    );
    recordRestore(context, { ...rebuilt, kind, by, target: target.id, safety: null });
    return { ...rebuilt, target, safety: null, safetyFlaws: [], alive: undefined, finished };
  }
  const alive = findFreshHeartbeat(context);
  const saved = await saveNow(context, target, lock);
  const { ref: safety, flaws: safetyFlaws } = saved;
  const { target: source, now } = await withGoodCheckpointHint(context.vault, target, () =>
    openPair(context.vault, opened, open(saved.checkpoint), scope.only ?? []),
  );
  requireKnown(scope, context.mission, target.id, source.listing, now.listing);
  const plan = planRestore(now.listing, source.listing, planOptions(context, source.checkpoint, scope));
  const moves =
    scope.only === undefined
      ? describePositionChanges(now.checkpoint.metadata, source.checkpoint.metadata)
      : [];
  const result = { target, safety, safetyFlaws, moves, alive, finished };
  const record = {
    kind,
    by,
    target: target.id,
    safety: { ref: safety, metadata: saved.checkpoint.metadata },
  };
  if (isEmptyPlan(plan)) {
    recordRestore(context, { ...record, changes: plan.changes, flaws: [] });
    return { ...result, changes: plan.changes, flaws: [] };
  }
  const staged = await withGoodCheckpointHint(context.vault, target, () =>
    stagePlan(context, plan, source, options.signal),
  );
  const journal = {
    mission: context.mission,
    cellRoot: context.cellRoot,
    target: target.id,
    safety: safety.id,
    safetyMs: safety.createdAtMs,
    flaws: staged,
    plan,
  };
  try {
    writeJournal(context.machine, context.vault.journalFile, journal);
  } catch (error) {
    removeStaging(context);
    throw error;
  }
  crashPoint("snapshot.restore.journalled");
  const { changes, flaws } = applyJournal(context, journal);
  recordRestore(context, { ...record, changes, flaws });
  return { ...result, changes, flaws };
}

/** What a restore would do, with nothing written anywhere. */
export async function previewRestore(
  context: MissionContext,
  options: RestoreOptions,
): Promise<RestoreResult> {
  const target = find(context, options.checkpoint);
  const scope = createScope(options.paths ?? [], context.cellRoot);
  const opened = await openTarget(context, target, createTableReader(context.vault));
  const source = await withGoodCheckpointHint(context.vault, target, () => openSource(context.vault, opened));
  const gone = !existsSync(context.cellRoot);
  const now = gone ? { listing: new Map(), flaws: [] } : await listCurrent(context);
  requireKnown(scope, context.mission, target.id, source.listing, now.listing);
  const { changes } = planRestore(
    now.listing,
    source.listing,
    planOptions(context, source.checkpoint, scope),
  );
  return {
    target,
    safety: null,
    changes,
    flaws: [],
    safetyFlaws: now.flaws,
    moves: [],
    alive: gone ? undefined : findFreshHeartbeat(context),
    finished: undefined,
  };
}

export type RestoreToResult = RestoreIntoResult & {
  readonly target: CheckpointRef;
  readonly directory: string;
};

/** Restores into an empty or absent directory. The cell, the vault and its lock are not touched. */
export async function restoreTo(
  context: MissionContext,
  options: RestoreOptions & { readonly directory: string },
): Promise<RestoreToResult> {
  const { directory } = options;
  refuseVault(context, directory);
  const target = find(context, options.checkpoint);
  const scope = createScope(options.paths ?? [], context.cellRoot);
  const opened = await openTarget(context, target, createTableReader(context.vault));
  const source = await withGoodCheckpointHint(context.vault, target, () => openSource(context.vault, opened));
  requireKnown(scope, context.mission, target.id, source.listing);
  const { again } = prepareDirectory(directory, target.id);
  const into = { directory, scope, onProgress: context.onProgress, signal: options.signal };
  const filled = await withGoodCheckpointHint(context.vault, target, () =>
    fillDirectory(source, into, again),
  );
  return { ...filled, target, directory };
}

function find(context: MissionContext, text: string | undefined): CheckpointRef {
  const { vault, mission, machine } = context;
  return findCheckpoint(vault.list(), { mission, text, nowMs: machine.clock.nowMs() });
}

/** Tells a damaged checkpoint from one that can be restored, as far as its tables go; the bytes are verified later. */
function openTarget(
  context: MissionContext,
  target: CheckpointRef,
  open: (checkpoint: Checkpoint) => OpenCheckpoint,
): Promise<OpenCheckpoint> {
  return withGoodCheckpointHint(context.vault, target, () => open(readCheckpoint(context.vault, target)));
}

/** The safety checkpoint: what the cell is at this moment. */
async function saveNow(context: MissionContext, target: CheckpointRef, lock: Lock): Promise<CaptureResult> {
  const message = `before restoring ${target.id}`;
  const saved = await untouched(context, ` ${target.id}`, () =>
    capture(context, lock, { reason: "pre-restore", message }),
  );
  crashPoint("snapshot.restore.safety-taken");
  return saved;
}

/** What the machine refuses before the cell is touched is told with the way that only reads the vault. */
async function untouched<T>(context: MissionContext, target: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "machine") throw error;
    const beside = `lazarus restore ${context.mission}${target} --to DIR, which needs nothing of the vault but to be read`;
    throw new LazarusError(error.code, `${error.message}; the cell was not touched`, {
      hint: error.hint === undefined ? beside : `${error.hint}; or ${beside}`,
      details: error.details,
      cause: error.cause,
    });
  }
}

function planOptions(context: MissionContext, target: Checkpoint, scope: Scope): PlanOptions {
  return {
    scope,
    wasExcluded: createMatcher(target.metadata.excluded),
    wasSkipped: new Set(
      target.metadata.flaws.flatMap(({ kind, path }) => (kind === "skipped" && path !== "." ? [path] : [])),
    ),
    isExcluded: createMatcher([OWN_NAMES, ...context.settings.exclude]),
    owners: detectCapabilities().owners,
  };
}

/** There is no cell: make it whole beside its place, then put it there with one rename. */
async function rebuildCell(
  context: MissionContext,
  source: Source,
  scope: Scope,
  signal: AbortSignal | undefined,
) {
  requireKnown(scope, context.mission, source.checkpoint.ref.id, source.listing);
  const staging = stagingDirectory(context);
  const directory = join(staging, "cell");
  try {
    removeStaging(context);
    makeDirectory(context.machine.disk, staging);
    prepareDirectory(directory, source.checkpoint.ref.id);
    const into = { directory, scope, onProgress: context.onProgress, signal };
    const { flaws } = await fillDirectory(source, into, false);
    syncPaths(directory, [...source.listing.keys()]);
    crashPoint("snapshot.restore.rebuilt");
    renameSync(directory, context.cellRoot);
    syncPaths(dirname(context.cellRoot), ["."]);
    crashPoint("snapshot.restore.put-back");
    removeStaging(context);
    const changes = { ...planRestore(new Map(), source.listing, { scope, owners: true }).changes };
    return {
      changes,
      flaws,
      moves: describePositionChanges({ flows: [], runs: [] }, source.checkpoint.metadata),
    };
  } catch (error) {
    removeStaging(context);
    throw asLazarusError(error, `bringing back the cell ${context.cellRoot}`, dirname(context.cellRoot));
  }
}

function refuseVault(context: MissionContext, directory: string): void {
  const place = realPlace(directory);
  const vaults = realPlace(context.config.vault_root);
  if (isAbsolute(directory) && place !== vaults && !isInside(vaults, place)) return;
  throw new LazarusError(
    "VAULT_MISPLACED",
    `${directory} lies inside the vault ${context.config.vault_root}`,
    {
      hint: "choose a directory outside the vault",
    },
  );
}
