// Applies a journal to a cell: for the restore that wrote it, and for the next command that finds the journal of a killed
// process. Everything was staged and verified before the journal was written, so a restore is only rolled forward (INV-3).
import { existsSync, linkSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { putBackConversation } from "../../agents/conversation/put-back.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Lock } from "../../platform/lock.ts";
import { adoptCopies } from "../git/outside-adopt.ts";
import type { MissionContext } from "../mission-context.ts";
import { outsideWorktree, WORKTREE } from "../model/cell-tree.ts";
import type { CheckpointRef, Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { parentPath, systemPath } from "../model/path-bytes.ts";
import { OWN_NAMES } from "../model/paths.ts";
import { createMatcher } from "../path-patterns.ts";
import { createLayerReader } from "../vault/layer-reader.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { markWorktree, requireWorktree } from "../worktree.ts";
import { applyPlan } from "./apply.ts";
import { markRestore } from "./effects.ts";
import { clearJournal, type Journal, readJournal, setAsideJournal } from "./journal.ts";
import { detectCapabilities, makeSpecial } from "./make-path.ts";
import type { Changes, RestorePlan } from "./plan.ts";
import { makeFiles } from "./pool.ts";
import { createTableReader, openSource } from "./source.ts";
import { findStaging, removeStaging, stagedName, stagingOf } from "./staging-place.ts";
import { FSYNC_DIRECTORIES, syncTree } from "./sync.ts";

/** A restore that was completed after an interruption. */
export interface Restored {
  readonly target: string;
  readonly safety: string;
  readonly changes: Changes;
  readonly flaws: readonly Flaw[];
}

/**
 * Finishes an interrupted restore; undefined when there was none. A damaged journal is an error once: it is moved aside, so
 * that the next command can restore the cell. A staging directory without a journal belongs to a restore that never touched
 * the cell, and is removed.
 */
export function finishInterruptedRestore(context: MissionContext, _lock: Lock): Restored | undefined {
  const file = context.vault.journalFile;
  const reading = readJournal(file);
  if (reading.state === "absent") {
    removeStaging(context);
    return undefined;
  }
  if (reading.state === "damaged") {
    const aside = setAsideJournal(file);
    removeStaging(context);
    const { mission, cellRoot } = context;
    throw new LazarusError(
      "CELL_DAMAGED",
      `a restore of ${mission} was interrupted and its journal is damaged (${reading.why}): the cell ${cellRoot} may be half restored; this command did nothing; the journal was moved to ${aside}`,
      {
        hint: `lazarus checkpoints ${mission}, then lazarus restore ${mission} ID`,
        details: { journal: aside },
      },
    );
  }
  const { journal } = reading;
  requireWorktree(context, { mayBeMissing: true });
  for (const path of [".", WORKTREE]) {
    if (
      existsSync(path === "." ? context.cellRoot : (outsideWorktree(context.tree)?.path ?? context.cellRoot))
    )
      continue;
    clearJournal(context.machine, file);
    removeStaging(context);
    const reason = `the ${path === "." ? "cell" : path} was removed before its restore was finished`;
    return { ...journal, changes: NO_CHANGES, flaws: [{ path, kind: "degraded", reason }] };
  }
  return applyJournal(context, journal, { isMarked: false });
}

const NO_CHANGES: Changes = { added: [], changed: [], metadata: [], removed: [], kept: [] };

/**
 * Marks the restore in the effect history. No path of the cell has changed yet: where the history cannot be written, the
 * restore is abandoned, so that no later command has to finish it.
 */
export function beginRestore(context: MissionContext, journal: Journal): void {
  try {
    markRestore(context.effects, journal.target, journal.effects ?? null);
  } catch (error) {
    clearJournal(context.machine, context.vault.journalFile);
    removeStaging(context);
    throw error;
  }
  crashPoint("snapshot.restore.history-marked");
}

/** Requires a durable journal and complete staging. A restore that was interrupted may not be marked in the history. */
export function applyJournal(
  context: MissionContext,
  journal: Journal,
  { isMarked }: { readonly isMarked: boolean },
): Restored {
  const { plan } = journal;
  const flaws: Flaw[] = [...journal.flaws];
  try {
    if (!isMarked) markRestore(context.effects, journal.target, journal.effects ?? null);
    markSafety(context, journal, flaws);
    crashPoint("snapshot.restore.safety-marked");
    const root = realpathSync(context.cellRoot);
    const outside = outsideWorktree(context.tree);
    const tree = outside === undefined ? root : { root, worktree: outside };
    const staging = journal.staging ?? findStaging(context);
    const applied = applyPlan(plan, {
      tree,
      stagedAt: (index) => `${stagingOf(staging, plan.place[index]!.entry.path)}/${stagedName(index)}`,
      aside: join(dirname(context.cellRoot), `.lazarus-aside-${context.mission}`, journal.safety),
      capabilities: detectCapabilities(),
      safetyMs: journal.safetyMs,
      isExcluded: createMatcher([OWN_NAMES, ...context.settings.exclude]),
      restage: (index) => restage(context, journal, index),
      onProgress: (done, total) => context.onProgress({ phase: "restoring", done, total, unit: "files" }),
    });
    markWorktree(context);
    const adopted = adoptCopies(tree, { isDuplicate: false });
    const touched = [...touchedPaths(plan), ...adopted, ...adopted.map(parentPath)];
    syncTree(tree, touched, FSYNC_DIRECTORIES);
    crashPoint("snapshot.restore.synced");
    flaws.push(...putBack(context, journal));
    crashPoint("snapshot.restore.conversation-put-back");
    clearJournal(context.machine, context.vault.journalFile);
    crashPoint("snapshot.restore.journal-cleared");
    removeStaging(context);
    const changes = { ...plan.changes, kept: [...plan.changes.kept, ...applied.kept] };
    return { target: journal.target, safety: journal.safety, changes, flaws: [...flaws, ...applied.flaws] };
  } catch (error) {
    const known = asLazarusError(
      error,
      `restoring ${journal.target} into ${context.cellRoot}`,
      context.cellRoot,
    );
    throw known.with({
      consequence: "the restore is incomplete and the next command will finish it",
      hint: known.hint ?? `lazarus restore ${context.mission} ${journal.target}`,
      details: { target: journal.target, safety: journal.safety },
    });
  }
}

/** After the copy in the cell is in place. Repeated after an interruption. */
function putBack(context: MissionContext, { conversation, safety }: Journal): readonly Flaw[] {
  if (conversation === undefined) return [];
  const { before } = conversation;
  // Without a session, the safety checkpoint has no copy of its files.
  return putBackConversation(context, { before, id: safety, isSaved: before !== null });
}

/** Makes the safety checkpoint the target of `undo`. Only now: a restore that changed nothing is not undone. */
function markSafety(context: MissionContext, journal: Journal, flaws: Flaw[]): void {
  const { target, paths, part } = journal;
  const mark = {
    beforeRestoreOf: target,
    ...(paths === undefined ? {} : { restoredPaths: paths }),
    ...(part === undefined ? {} : { restoredPart: part }),
  };
  const marked = (ref: CheckpointRef) => (ref.id === journal.safety ? { ...ref, ...mark } : ref);
  try {
    const refs = context.vault.list();
    if (refs.some((ref) => ref.id === journal.safety && ref.beforeRestoreOf !== journal.target)) {
      context.vault.publish(refs.map(marked));
    }
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    const reason = `undo will not find this restore; use lazarus restore ${context.mission} ${journal.safety} instead (${error.message})`;
    flaws.push({ path: ".", kind: "degraded", reason });
  }
}

/** Directories with changed names, and paths changed in place; placed files were synced in staging. */
function touchedPaths(plan: RestorePlan): string[] {
  const paths = new Set<string>();
  for (const { entry } of plan.place) paths.add(parentPath(entry.path));
  for (const { path } of [...plan.clear, ...plan.remove]) paths.add(parentPath(path));
  for (const { entry, set, was } of plan.directories) if (set || was === null) paths.add(entry.path);
  for (const { entry } of plan.adjust) paths.add(entry.path);
  return [...paths];
}

/** Recreates a staged path from the vault, in case the staging directory was removed after the interruption. */
function restage(context: MissionContext, journal: Journal, index: number): void {
  const { place } = journal.plan;
  const { entry, inode } = place[index]!;
  const staging = stagingOf(journal.staging ?? findStaging(context), entry.path);
  const name = stagedName(index);
  const ref = context.vault.list().find(({ id }) => id === journal.target);
  if (ref === undefined) throw new LazarusError("CHECKPOINT_UNKNOWN", `checkpoint ${journal.target} is gone`);
  mkdirSync(dirname(`${staging}/${name}`), { recursive: true, mode: 0o700 });
  if (entry.type !== "file") {
    makeSpecial(`${staging}/${name}`, entry, detectCapabilities(), []);
    return;
  }
  if (inode !== index && linkStaged(context, place[inode]!.entry.path, `${staging}/${name}`)) return;
  const open = createTableReader(context.vault);
  const { layers } = openSource(context.vault, open(readCheckpoint(context.vault, ref)));
  using reader = createLayerReader(layers);
  makeFiles({ root: staging, replace: true }, [{ path: name, entry }], reader, detectCapabilities());
}

/** False where the worktree is on another file system: then the link is made when the path is put into place. */
function linkStaged({ tree: roots }: MissionContext, leader: string, staged: string): boolean {
  using tree = new OpenTree(roots);
  try {
    linkSync(systemPath(tree.at(leader)), staged);
    return true;
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    return false;
  }
}
