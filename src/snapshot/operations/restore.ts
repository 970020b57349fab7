// Restores a mission's cell from its vault (INV-3). Write order matters: mission lock → refuse under a live agent → vault
// lock → finish an interrupted restore → open the target → safety checkpoint → plan → refuse what is in use → stage and
// verify → journal → mark in the effect history → apply → record. Nothing in the cell changes before the journal is
// durable. A missing cell is built next to its final path and renamed.
import { existsSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ConversationPosition } from "../../agents/conversation/cell.ts";
import { lockMissionAfterStop } from "../../cell/mission-lock.ts";
import type { EffectNote } from "../../effects/notes.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { asLazarusError } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import { type CaptureResult, capture } from "../capture/capture.ts";
import { adoptCopies } from "../git/outside-adopt.ts";
import type { MissionContext } from "../mission-context.ts";
import { WORKTREE } from "../model/cell-tree.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { OWN_NAMES } from "../model/paths.ts";
import { createMatcher } from "../path-patterns.ts";
import { keepShared, planPutBack, putBackWithoutSafety } from "../restore/conversation.ts";
import { withCellUntouchedHint, withGoodCheckpointHint } from "../restore/damage-hint.ts";
import { doneSinceCheckpoint, effectsPosition, markRestore } from "../restore/effects.ts";
import { fillDirectory, prepareDirectory } from "../restore/fill-directory.ts";
import { writeJournal } from "../restore/journal.ts";
import { detectCapabilities } from "../restore/make-path.ts";
import { type Changes, isEmptyPlan, type PlanOptions, planRestore } from "../restore/plan.ts";
import { describeMoves, type FreshHeartbeat, findFreshHeartbeat } from "../restore/position-changes.ts";
import { applyJournal, beginRestore, type Restored } from "../restore/roll-forward.ts";
import {
  coversConversation,
  createScope,
  FILES_ONLY,
  type Part,
  pathsOf,
  type Scope,
} from "../restore/scope.ts";
import { findSplitLinks, skippedPaths } from "../restore/shortfalls.ts";
import {
  createTableReader,
  type OpenCheckpoint,
  openPair,
  openSource,
  type Source,
} from "../restore/source.ts";
import { stagePlan } from "../restore/stage.ts";
import { findStaging, removeStaging } from "../restore/staging-place.ts";
import { syncPaths, syncTree } from "../restore/sync.ts";
import type { Checkpoint } from "../vault/manifest.ts";
import { adoptEmptyWorktree, remakeWorktree, requireWorktree, withEmptyWorktree } from "../worktree.ts";
import { recoverEffects } from "./carry-effects.ts";
import { listCurrent } from "./current-listing.ts";
import { refuseForeignAgent, refuseLiveAgent, refuseLiveRuns, refuseOpenFiles } from "./live-processes.ts";
import { lockVault } from "./lock.ts";
import { requireKnown, restored } from "./path-history.ts";
import { recordRestore } from "./record.ts";
import { findTarget, openTarget } from "./restore-target.ts";

/** Which checkpoint and paths to restore. */
export interface RestoreOptions {
  /** Id, prefix of an id, `latest`, or a time; default `latest`. */
  readonly checkpoint?: string | undefined;
  /** Only these paths and everything below them. */
  readonly paths?: readonly string[];
  /** Only the files, or only the conversation; default: both. */
  readonly part?: Part | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For the event log: who asked for the restore, if not a user. */
  readonly by?: string;
  /** The mission's lock, when the caller already holds it and has checked that no agent is alive. */
  readonly heldLock?: Lock;
}

/** What a restore changed, and its safety checkpoint. */
export interface RestoreResult {
  readonly target: CheckpointRef;
  /** The safety checkpoint; null when there was no cell. */
  readonly safety: CheckpointRef | null;
  readonly changes: Changes;
  /** Paths that were not restored exactly, or moved aside. */
  readonly flaws: readonly Flaw[];
  /** Paths that the safety checkpoint did not save exactly. */
  readonly safetyFlaws: readonly Flaw[];
  /** Paths that the restored checkpoint does not contain, because they were skipped when it was taken. */
  readonly notSaved: readonly Flaw[];
  /** How the positions of flows and runs change, one sentence each. */
  readonly moves: readonly string[];
  /** The position of the conversation in the restored checkpoint; null without one. */
  readonly conversation: ConversationPosition | null;
  /** What the mission did to the outside world after the checkpoint: it is not undone. */
  readonly doneSince: readonly EffectNote[];
  /** Set when an agent may be running in the cell. */
  readonly alive: FreshHeartbeat | undefined;
  /** An interrupted restore that was finished first. */
  readonly finished: Restored | undefined;
}

/** Restores a cell to a checkpoint, after taking a safety checkpoint. */
export async function restoreCell(context: MissionContext, options: RestoreOptions): Promise<RestoreResult> {
  const { part } = options;
  const paths = pathsOf(part, options.paths ?? []);
  const choose = () => ({ target: findTarget(context, options.checkpoint), paths, part });
  return await restoreTarget(context, choose, { ...options, kind: "restore" });
}

/** What to restore, and which part of it; no paths for the whole cell. */
interface Choice {
  readonly target: CheckpointRef;
  readonly paths: readonly string[];
  readonly part: Part | undefined;
}

type TargetOptions = Omit<RestoreOptions, "checkpoint" | "paths" | "part"> & {
  readonly kind: "restore" | "undo";
};

/** `choose` is called under the lock, after an interrupted restore was finished. */
export async function restoreTarget(
  given: MissionContext,
  choose: () => Choice,
  options: TargetOptions,
): Promise<RestoreResult> {
  // Checked first: taking the lock would create a vault for a mission that has none.
  if (given.vault.list().length === 0) findTarget(given, undefined);
  using _ = await lockCell(given, options);
  using locked = await withCellUntouchedHint(given, "", () =>
    lockVault(given, `restore of ${given.mission}`),
  );
  const context = { ...given, ...adoptEmptyWorktree(given) };
  recoverEffects(context);
  const { target, paths, part } = choose();
  const { scope, kept } = keepShared(context, createScope(paths, context.tree, part), part);
  refuseForeignAgent(context, scope);
  const open = createTableReader(context.vault);
  const opened = await openTarget(context, target, open);
  requireWorktree(context, { mayBeMissing: true, ...(scope.has(WORKTREE) && { target }) });
  // A worktree elsewhere is restored in place, and so is a new, empty cell then.
  if (context.tree !== context.cellRoot) makeDirectory(context.machine.disk, context.cellRoot);
  const { restored, safety, alive } = existsSync(context.cellRoot)
    ? await restoreInPlace(context, locked.lock, { opened, open, scope, signal: options.signal })
    : await restoreMissingCell(context, opened, scope, options.signal);
  const { kind, by } = options;
  recordRestore(context, { ...restored, kind, by, target: target.id, safety });
  const doneSince = doneSinceCheckpoint(context, opened.checkpoint, scope);
  const notSaved = skippedPaths(opened.checkpoint.metadata, scope);
  const conversation = kept.length === 0 ? (opened.checkpoint.metadata.conversation ?? null) : null;
  const found = { ...restored, flaws: [...restored.flaws, ...kept], notSaved, doneSince, conversation };
  return { ...found, target, safety: safety?.ref ?? null, alive, finished: locked.finished };
}

/** Held until the restore is done, so that no agent starts in a cell that is half restored. */
async function lockCell(
  context: MissionContext,
  { heldLock, kind }: TargetOptions,
): Promise<Disposable | undefined> {
  if (heldLock !== undefined) return undefined;
  const { machine, config, mission } = context;
  const lock = await lockMissionAfterStop(machine, config, mission, `${kind} of ${mission}`);
  try {
    refuseLiveAgent(context, kind);
    return lock;
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

interface Outcome {
  readonly restored: Pick<RestoreResult, "changes" | "flaws" | "safetyFlaws" | "moves">;
  readonly safety: { readonly ref: CheckpointRef; readonly metadata: Checkpoint["metadata"] } | null;
  readonly alive: FreshHeartbeat | undefined;
}

interface InPlace {
  readonly opened: OpenCheckpoint;
  readonly open: (checkpoint: Checkpoint) => OpenCheckpoint;
  readonly scope: Scope;
  readonly signal: AbortSignal | undefined;
}

async function restoreInPlace(given: MissionContext, lock: Lock, request: InPlace): Promise<Outcome> {
  const { vault, mission, cellRoot } = given;
  const { opened, open, scope, signal } = request;
  const target = opened.checkpoint.ref;
  const alive = findFreshHeartbeat(given);
  refuseLiveRuns(given, scope);
  const saved = await takeSafetyCheckpoint(given, target, lock);
  const context = { ...given, ...remakeWorktree(given) };
  const safety = { ref: saved.ref, metadata: saved.checkpoint.metadata };
  const { target: source, now } = await withGoodCheckpointHint(vault, target, () =>
    openPair(vault, opened, open(saved.checkpoint), scope.only ?? []),
  );
  requireKnown(context, scope, restored(mission, target.id, source.listing, now.listing));
  const plan = planRestore(now.listing, source.listing, planOptions(context, source.checkpoint, scope));
  const moves = describeMoves(now.checkpoint.metadata, source.checkpoint.metadata, scope);
  const result = { safetyFlaws: saved.flaws, moves };
  const conversation = planPutBack(context, plan, scope);
  if (isEmptyPlan(plan) && conversation === undefined) {
    syncTree(context.tree, adoptCopies(context.tree, { isDuplicate: false }));
    return { restored: { ...result, changes: plan.changes, flaws: [] }, safety, alive };
  }
  refuseForeignAgent(context, scope);
  refuseOpenFiles(context, plan, conversation?.files ?? []);
  const flaws = await withGoodCheckpointHint(vault, target, () => stagePlan(context, plan, source, signal));
  const ids = { target: target.id, safety: saved.ref.id, safetyMs: saved.ref.createdAtMs };
  const effects = scope.only === undefined ? effectsPosition(source.checkpoint.metadata) : null;
  const limited = {
    ...(scope.only === undefined ? {} : { paths: scope.only }),
    ...(scope === FILES_ONLY ? { part: "files" as const } : {}),
    ...(conversation && { conversation: { before: conversation.before } }),
  };
  const splits = findSplitLinks(plan, source.listing, scope);
  const staging = findStaging(context);
  const journal = {
    mission,
    cellRoot,
    ...ids,
    ...limited,
    effects,
    staging,
    flaws: [...flaws, ...splits],
    plan,
  };
  try {
    writeJournal(context.machine, vault.journalFile, journal);
  } catch (error) {
    removeStaging(context);
    throw error;
  }
  crashPoint("snapshot.restore.journalled");
  await withCellUntouchedHint(context, ` ${target.id}`, async () => beginRestore(context, journal));
  const applied = applyJournal(context, journal, { isMarked: true });
  return { restored: { ...result, changes: applied.changes, flaws: applied.flaws }, safety, alive };
}

async function restoreMissingCell(
  context: MissionContext,
  opened: OpenCheckpoint,
  scope: Scope,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const { vault } = context;
  const rebuilt = await withGoodCheckpointHint(vault, opened.checkpoint.ref, () =>
    rebuildCell(context, openSource(vault, opened), scope, signal),
  );
  return { restored: { ...rebuilt, safetyFlaws: [] }, safety: null, alive: undefined };
}

/** What a restore would change. Writes nothing. */
export async function previewRestore(given: MissionContext, options: RestoreOptions): Promise<RestoreResult> {
  const context = { ...given, ...withEmptyWorktree(given) };
  const { vault, mission, cellRoot, tree } = context;
  const target = findTarget(context, options.checkpoint);
  const wanted = createScope(pathsOf(options.part, options.paths ?? []), tree, options.part);
  const { scope, kept } = keepShared(context, wanted, options.part);
  const opened = await openTarget(context, target, createTableReader(vault));
  const source = await withGoodCheckpointHint(vault, target, () => openSource(vault, opened));
  requireWorktree(context, { mayBeMissing: true, ...(scope.has(WORKTREE) && { target }) });
  const isMissing = !existsSync(cellRoot);
  const now = isMissing && tree === cellRoot ? { listing: new Map(), flaws: [] } : await listCurrent(context);
  requireKnown(context, scope, restored(mission, target.id, source.listing, now.listing));
  const plan = planRestore(now.listing, source.listing, planOptions(context, source.checkpoint, scope));
  return {
    target,
    safety: null,
    changes: plan.changes,
    flaws: [...findSplitLinks(plan, source.listing, scope), ...kept],
    safetyFlaws: now.flaws,
    notSaved: skippedPaths(source.checkpoint.metadata, scope),
    moves: [],
    conversation: kept.length === 0 ? (source.checkpoint.metadata.conversation ?? null) : null,
    doneSince: doneSinceCheckpoint(context, source.checkpoint, scope),
    alive: isMissing ? undefined : findFreshHeartbeat(context),
    finished: undefined,
  };
}

async function takeSafetyCheckpoint(
  context: MissionContext,
  target: CheckpointRef,
  lock: Lock,
): Promise<CaptureResult> {
  const message = `before restoring ${target.id}`;
  const saved = await withCellUntouchedHint(context, ` ${target.id}`, () =>
    capture(context, lock, { reason: "pre-restore", message, mayBeMissing: true }),
  );
  crashPoint("snapshot.restore.safety-taken");
  return saved;
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

/** A cell that was missing has no earlier state: an undo must not find the restore before its removal. */
function forgetUndo({ vault }: MissionContext): void {
  const refs = vault.list();
  if (refs.every(({ beforeRestoreOf }) => beforeRestoreOf === null)) return;
  vault.publish(
    refs.map(({ restoredPaths: _, ...ref }): CheckpointRef => ({ ...ref, beforeRestoreOf: null })),
  );
}

/** Builds the cell in staging, then renames it into place. */
async function rebuildCell(
  context: MissionContext,
  source: Source,
  scope: Scope,
  signal: AbortSignal | undefined,
): Promise<Pick<RestoreResult, "changes" | "flaws" | "moves">> {
  const { ref, metadata } = source.checkpoint;
  requireKnown(context, scope, restored(context.mission, ref.id, source.listing));
  const staging = findStaging(context).cell;
  const directory = join(staging, "cell");
  try {
    removeStaging(context);
    makeDirectory(context.machine.disk, staging);
    prepareDirectory(directory, ref.id);
    const into = { directory, scope, onProgress: context.onProgress, signal };
    const filled = await fillDirectory(source, into, false);
    const flaws = [...filled.flaws];
    adoptCopies(directory, { home: context.cellRoot, isDuplicate: false });
    syncPaths(directory, [...source.listing.keys()]);
    crashPoint("snapshot.restore.rebuilt");
    markRestore(context.effects, ref.id, scope.only === undefined ? effectsPosition(metadata) : null);
    crashPoint("snapshot.restore.rebuild-marked");
    forgetUndo(context);
    crashPoint("snapshot.restore.undo-forgotten");
    // Before the cell appears: once the cell is in place, no later command would do this.
    if (coversConversation(scope)) flaws.push(...putBackWithoutSafety(context, directory, ref.id));
    crashPoint("snapshot.restore.rebuilt-conversation");
    renameSync(directory, context.cellRoot);
    syncPaths(dirname(context.cellRoot), ["."]);
    crashPoint("snapshot.restore.put-back");
    removeStaging(context);
    const { changes } = planRestore(new Map(), source.listing, { scope, owners: true });
    return { changes, flaws, moves: describeMoves({ flows: [], runs: [] }, metadata, scope) };
  } catch (error) {
    removeStaging(context);
    throw asLazarusError(error, `restoring the cell ${context.cellRoot}`, dirname(context.cellRoot));
  }
}
