// Carries a journalled plan out in a cell, in the one order that is safe: what is in the way, directories, renames,
// metadata, deletions, times of directories, a last look. Every step may have been done before by a process that was
// killed, and then does nothing (INV-3). What one path refuses becomes a flaw; a full or broken disk stops everything,
// and the journal stays for the next attempt.
import { chmodSync, readdirSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Flaw } from "../model/entry.ts";
import { joinPath, parentPath, systemPath } from "../model/path-bytes.ts";
import { sidecarSuffix } from "../model/sqlite-files.ts";
import { type CellAccess, createCellAccess, matches } from "./cell-access.ts";
import type { Capabilities } from "./make-path.ts";
import type { Kept, RestorePlan } from "./plan.ts";
import { stagedName } from "./stage.ts";
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
  readonly cellRoot: string;
  readonly staging: string;
  /** Where things that are in no checkpoint go. */
  readonly aside: string;
  readonly capabilities: Capabilities;
  /** When the safety checkpoint began: what was written later is in no checkpoint. */
  readonly safetyMs: number;
  readonly isExcluded: (path: string) => boolean;
  /** Stages step `index` of `plan.place` once more, from the vault; throws when that is impossible. */
  restage(index: number): void;
  onProgress(done: number, total: number): void;
}

export interface Applied {
  readonly flaws: readonly Flaw[];
  /** What stayed although the checkpoint does not have it, found on the way. */
  readonly kept: readonly Kept[];
}

export function applyPlan(plan: RestorePlan, options: ApplyOptions): Applied {
  const { capabilities, safetyMs } = options;
  const cell = createCellAccess(options);
  const kept: Kept[] = [];
  const attempt = createAttempts(cell.flaws, plan, options.onProgress);
  const sidecarsOf = findSidecars(cell, plan, options.isExcluded);

  for (const step of plan.clear) {
    attempt(step.path, () => removeStep(cell, step, kept, true));
    crashPoint("snapshot.restore.cleared");
  }
  cell.invalidate();
  for (const step of plan.directories) {
    attempt(step.entry.path, () => directoryStep(cell, step));
    crashPoint("snapshot.restore.directory-made");
  }
  for (const [index, step] of plan.place.entries()) {
    attempt(step.entry.path, () =>
      placeStep(cell, step, {
        staged: `${options.staging}/${stagedName(index)}`,
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
  narrowAgain(cell, plan);
  lookOnceMore(cell, plan);
  return { flaws: cell.flaws, kept };
}

const PROGRESS_STEPS = 256;
/** What concerns the whole disk or process, not one path. */
const FATAL = new Set(["ENOSPC", "EDQUOT", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM"]);

/** Runs steps; what one path refuses is noted and the rest goes on. */
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
      const why = error instanceof Refusal ? error.message : code;
      flaws.push({ path, kind: "skipped", reason: `not restored: ${why}` });
    }
    done += 1;
    if (done % PROGRESS_STEPS === 0 || done === total) onProgress(done, total);
  };
}

/** For a database that will be replaced or removed: the logs beside it that no listing has, being folded into it. */
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
    for (const name of namesIn(cell.absolute(directory))) {
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

/** Names that matter here are text; others cannot end like a sidecar of a path we know. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(systemPath(directory));
  } catch {
    return [];
  }
}

/** Directories that were opened up to work in them, and that no step gave its final mode. */
function narrowAgain(cell: CellAccess, plan: RestorePlan): void {
  const finished = new Set(plan.directories.filter(({ set }) => set).map(({ entry }) => entry.path));
  for (const [path, mode] of cell.widened) {
    if (finished.has(path) || !cell.stat(path)?.isDirectory()) continue;
    try {
      chmodSync(systemPath(cell.absolute(path)), mode);
    } catch (error) {
      cell.flaws.push({
        path,
        kind: "degraded",
        reason: `its mode could not be set back (${systemErrorCode(error)})`,
      });
    }
  }
}

/** Is every touched path what the checkpoint has? The bytes were compared when they were staged. */
function lookOnceMore(cell: CellAccess, plan: RestorePlan): void {
  const flawed = new Set(cell.flaws.map(({ path }) => path));
  const doubt = (path: string) => {
    if (flawed.has(path)) return;
    const reason = "it is not as the checkpoint has it: something changed it during the restore";
    cell.flaws.push({ path, kind: "degraded", reason });
  };
  const inodes = new Map<number, bigint>();
  for (const { entry, inode } of plan.place) {
    const stat = cell.stat(entry.path);
    if (stat === undefined || !matches(stat, entry)) doubt(entry.path);
    else if (entry.type !== "symlink" && (Number(stat.mode) & 0o7777) !== entry.mode) doubt(entry.path);
    else if ((inodes.get(inode) ?? stat.ino) !== stat.ino) doubt(entry.path);
    else inodes.set(inode, stat.ino);
  }
  for (const { entry } of plan.adjust) {
    const stat = cell.stat(entry.path);
    if (stat === undefined || !matches(stat, entry)) doubt(entry.path);
  }
  for (const { entry, set } of plan.directories) {
    if (set && !cell.stat(entry.path)?.isDirectory() && entry.path !== ".") doubt(entry.path);
  }
}
