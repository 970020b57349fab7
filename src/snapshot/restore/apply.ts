// Applies a journalled plan to a cell, in the one safe order: obstacles, directories, renames, metadata, deletions,
// directory times, final check. A step that a killed process already did is a no-op (INV-3). An error of one path becomes
// a flaw; a full or failing disk stops the restore, and the journal stays for the next attempt.
import { readdirSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { quietly, systemErrorCode } from "../../platform/errors.ts";
import type { TreeRoot } from "../model/cell-tree.ts";
import type { Flaw } from "../model/entry.ts";
import { changeMode } from "../model/open-tree.ts";
import { joinPath, parentPath, systemPath } from "../model/path-bytes.ts";
import { sidecarSuffix } from "../model/sqlite-files.ts";
import { type CellAccess, createCellAccess, matches } from "./cell-access.ts";
import type { Capabilities } from "./make-path.ts";
import type { Kept, RestorePlan } from "./plan.ts";
import {
  adjustStep,
  directoryStep,
  finishDirectoryStep,
  placeStep,
  Refusal,
  removeSidecar,
  removeStep,
} from "./steps.ts";

export interface ApplyOptions {
  readonly tree: TreeRoot;
  /** Where a step of `plan.place` was staged. */
  stagedAt(index: number): string;
  /** Directory for files that are in no checkpoint. */
  readonly aside: string;
  readonly capabilities: Capabilities;
  /** When the safety checkpoint began: later writes are in no checkpoint. */
  readonly safetyMs: number;
  readonly isExcluded: (path: string) => boolean;
  /** Stages step `index` of `plan.place` again from the vault. */
  restage(index: number): void;
  onProgress(done: number, total: number): void;
}

export interface Applied {
  readonly flaws: readonly Flaw[];
  /** Paths that the checkpoint does not have and that were kept. */
  readonly kept: readonly Kept[];
}

export function applyPlan(plan: RestorePlan, options: ApplyOptions): Applied {
  const { capabilities, safetyMs } = options;
  using cell = createCellAccess(options);
  const kept: Kept[] = [];
  const attempt = createAttempts(cell.flaws, plan, options.onProgress);
  const sidecarsOf = findSidecars(cell, plan, options.isExcluded);

  for (const step of plan.clear) {
    attempt(step.path, () => removeStep(cell, step, kept, true));
    crashPoint("snapshot.restore.cleared");
  }
  cell.forget();
  for (const step of plan.directories) {
    attempt(step.entry.path, () => directoryStep(cell, step));
    crashPoint("snapshot.restore.directory-made");
  }
  for (const [index, step] of plan.place.entries()) {
    attempt(step.entry.path, () =>
      placeStep(cell, step, {
        staged: options.stagedAt(index),
        index,
        leader: step.inode === index ? undefined : plan.place[step.inode]!.entry.path,
        capabilities,
        sidecars: sidecarsOf(step.entry.path),
        safetyMs,
        restage: () => options.restage(index),
      }),
    );
    crashPoint("snapshot.restore.placed");
  }
  for (const { entry, was } of plan.adjust) {
    attempt(entry.path, () => adjustStep(cell, entry, was, capabilities));
    crashPoint("snapshot.restore.adjusted");
  }
  for (const step of plan.remove) {
    attempt(step.path, () => {
      for (const sidecar of sidecarsOf(step.path)) removeSidecar(cell, sidecar, step.path, safetyMs);
      removeStep(cell, step, kept);
    });
    crashPoint("snapshot.restore.removed");
  }
  for (const step of plan.directories.toReversed()) {
    attempt(step.entry.path, () => finishDirectoryStep(cell, step, capabilities));
    crashPoint("snapshot.restore.directory-finished");
  }
  restoreModes(cell, plan);
  cell.forget();
  checkResult(cell, plan);
  return { flaws: cell.flaws, kept };
}

const PROGRESS_STEPS = 256;
/** Errors of the disk or the process, not of one path. */
const FATAL = new Set(["ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM"]);

/** Runs steps; an error of one path becomes a flaw and the others continue. */
function createAttempts(
  flaws: Flaw[],
  plan: RestorePlan,
  onProgress: (done: number, total: number) => void,
): (path: string, work: () => void) => void {
  const { clear, directories, place, adjust, remove } = plan;
  const total = clear.length + 2 * directories.length + place.length + adjust.length + remove.length;
  let done = 0;
  return (path, work) => {
    try {
      work();
    } catch (error) {
      const code = systemErrorCode(error);
      if (!(error instanceof Refusal) && (code === undefined || FATAL.has(code))) throw error;
      const reason = error instanceof Refusal ? error.message : code;
      flaws.push({ path, kind: "skipped", reason: `not restored: ${reason}` });
    }
    done += 1;
    if (done % PROGRESS_STEPS === 0 || done === total) onProgress(done, total);
  };
}

/** For each database that is replaced or removed: its sidecar files that are in no listing, because SQLite copied them in. */
function findSidecars(
  cell: CellAccess,
  plan: RestorePlan,
  isExcluded: (path: string) => boolean,
): (path: string) => readonly string[] {
  const touched = new Set<string>();
  for (const { entry } of plan.place) if (entry.type === "file") touched.add(entry.path);
  for (const { path, was } of plan.remove) if (was.type === "file") touched.add(path);
  const listed = new Set(plan.sidecars);
  const found = new Map<string, string[]>();
  for (const directory of new Set([...touched].map(parentPath))) {
    for (const name of namesIn(cell, directory)) {
      const suffix = sidecarSuffix(name);
      if (suffix === undefined) continue;
      const path = joinPath(directory, name);
      const database = path.slice(0, -suffix.length);
      if (!touched.has(database) || listed.has(path) || isExcluded(path)) continue;
      found.set(database, [...(found.get(database) ?? []), path]);
    }
  }
  return (path) => found.get(path) ?? [];
}

/** As text: names that are not UTF-8 cannot be sidecars of a known path. */
function namesIn(cell: CellAccess, directory: string): string[] {
  return quietly(() => readdirSync(cell.directory(directory))) ?? [];
}

/** Restores the modes of directories that were made writable and that no step finished. */
function restoreModes(cell: CellAccess, plan: RestorePlan): void {
  const finished = new Set(plan.directories.filter(({ set }) => set).map(({ entry }) => entry.path));
  for (const [path, mode] of cell.widened) {
    if (finished.has(path) || !cell.stat(path)?.isDirectory()) continue;
    try {
      changeMode(systemPath(cell.at(path)), mode);
    } catch (error) {
      cell.flaws.push({
        path,
        kind: "degraded",
        reason: `its mode could not be restored (${systemErrorCode(error)})`,
      });
    }
  }
}

/** Checks that every touched path matches the checkpoint. Contents were verified when they were staged. */
function checkResult(cell: CellAccess, plan: RestorePlan): void {
  const flawed = new Set(cell.flaws.map(({ path }) => path));
  const report = (path: string) => {
    if (flawed.has(path)) return;
    const reason = "it differs from the checkpoint: it was changed during the restore";
    cell.flaws.push({ path, kind: "degraded", reason });
  };
  const inodes = new Map<number, bigint>();
  for (const { entry, inode } of plan.place) {
    const stat = cell.stat(entry.path);
    if (stat === undefined || !matches(stat, entry)) report(entry.path);
    else if (entry.type !== "symlink" && (Number(stat.mode) & 0o7777) !== entry.mode) report(entry.path);
    else if ((inodes.get(inode) ?? stat.ino) !== stat.ino) report(entry.path);
    else inodes.set(inode, stat.ino);
  }
  for (const { entry } of plan.adjust) {
    const stat = cell.stat(entry.path);
    if (stat === undefined || !matches(stat, entry)) report(entry.path);
  }
  for (const { entry, set } of plan.directories) {
    if (set && !cell.stat(entry.path)?.isDirectory() && entry.path !== ".") report(entry.path);
  }
}
