// Where a restore stages new files: on the file system of their final place, so that only a rename is left. Next to the cell,
// and for a worktree on another file system next to that, if no other user can write there, or in a hidden directory inside the
// worktree, which exists only during the restore and which no checkpoint holds. Where another user could replace that
// directory, also next to the cell: then each file is copied when it is put into place.
import { hash } from "node:crypto";
import { accessSync, constants, lstatSync, mkdirSync, type Stats, statSync, utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { posixSupport } from "../../platform/posix.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { MissionContext } from "../mission-context.ts";
import { isInWorktree, outsideWorktree } from "../model/cell-tree.ts";

type Place = Pick<MissionContext, "cellRoot" | "mission" | "tree" | "vault">;

/** One directory for the cell, one for a worktree elsewhere; often the same. */
export interface Staging {
  readonly cell: string;
  readonly worktree: string;
}

const PER_DIRECTORY = 1024;

/** Where step `index` of `plan.place` is staged, below its staging directory. */
export function stagedName(index: number): string {
  return `${Math.floor(index / PER_DIRECTORY)}/${index}`;
}

/** The staging directory for a path of the checkpoint. */
export function stagingOf(staging: Staging, path: string): string {
  return isInWorktree(path) ? staging.worktree : staging.cell;
}

/** The scan of cells ignores names with this prefix, and captures leave them out. */
const nextToCell = ({ cellRoot, mission }: Place) => join(dirname(cellRoot), `.lazarus-restore-${mission}`);

/** Another home may have a mission of the same name next to it. */
const nameOf = ({ mission, vault }: Place) =>
  `.lazarus-restore-${mission}-${hash("sha256", vault.root).slice(0, 8)}`;

export function findStaging(context: Place): Staging {
  const cell = nextToCell(context);
  const outside = outsideWorktree(context.tree);
  if (outside === undefined) return { cell, worktree: cell };
  const parent = dirname(outside.path);
  const [own, above] = [lstatSync(outside.path), lstatSync(parent)];
  if (own.dev === statSync(dirname(context.cellRoot)).dev) return { cell, worktree: cell };
  if (above.dev === own.dev && isPrivate(above) && isWritable(parent))
    return { cell, worktree: join(parent, nameOf(context)) };
  return { cell, worktree: isOwn(own) && isSafe(above) ? join(outside.path, nameOf(context)) : cell };
}

const isOwn = ({ uid }: Stats) => uid === process.geteuid?.();
const isClosed = ({ mode }: Stats) => (mode & 0o022) === 0;
const isPrivate = (stat: Stats) => isOwn(stat) && isClosed(stat);
/** Only root and this user can replace our files in there. */
const isSafe = (stat: Stats) =>
  (isOwn(stat) || stat.uid === 0) && (isClosed(stat) || (stat.mode & STICKY) !== 0);
const STICKY = 0o1000;

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Makes empty staging directories with room for `count` steps. */
export function makeStaging(context: Place, staging: Staging, count: number): void {
  for (const directory of new Set([staging.cell, staging.worktree])) {
    keepTime(context, directory, () => {
      removeTree(directory);
      // Not `recursive`, which accepts a directory that another process has made.
      mkdirSync(directory, 0o700);
    });
    for (let at = 0; at < count; at += PER_DIRECTORY) mkdirSync(`${directory}/${at / PER_DIRECTORY}`);
  }
}

/** Removes the staging directories in all possible places. */
export function removeStaging(context: Place): void {
  const outside = outsideWorktree(context.tree);
  const isOurs = outside !== undefined && idOf(outside.path) === outside.id;
  const parents = outside === undefined ? [] : [dirname(outside.path), ...(isOurs ? [outside.path] : [])];
  for (const directory of [nextToCell(context), ...parents.map((parent) => join(parent, nameOf(context)))]) {
    if (lstatSync(directory, { throwIfNoEntry: false }) === undefined) continue;
    keepTime(context, directory, () => removeTree(directory));
  }
}

function idOf(path: string): string | undefined {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

/** Work on a directory inside the worktree does not change the worktree's own time. */
function keepTime({ tree }: Place, directory: string, work: () => void): void {
  const outside = outsideWorktree(tree);
  const top = outside?.path === dirname(directory) ? outside.path : undefined;
  const before = top === undefined ? undefined : lstatSync(top, { bigint: true, throwIfNoEntry: false });
  work();
  if (top === undefined || before === undefined) return;
  const support = posixSupport();
  if (support.ok) support.posix.setTimes(top, before.atimeNs, before.mtimeNs);
  else utimesSync(top, before.atime, before.mtime);
}
