// After a restore: repositories that have lost what they had outside the cell, or that would share it with another cell,
// use the copy in `state/git-outside` from now on. Only the file that leads outside is replaced.
import { lstatSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { quietly } from "../../platform/errors.ts";
import { diskPath, isInWorktree, outsideWorktree, rootOf, type TreeRoot } from "../model/cell-tree.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import { findOutside, isGitPointer, type Outside } from "./outside.ts";
import { COPIES, copyPathOf, DESCRIPTION } from "./outside-copy.ts";

export interface AdoptOptions {
  /** Where the cell will be, if it is elsewhere now. */
  readonly home?: TreeRoot;
  /** There is another cell that the repositories outside belong to. */
  readonly isDuplicate: boolean;
}

/** Returns the paths that were replaced. */
export function adoptCopies(root: TreeRoot, { home = root, isDuplicate }: AdoptOptions): string[] {
  const lost = findOutside(root, pointersWithCopy(rootOf(root)), home).filter((outside) =>
    isLost(outside, home, isDuplicate),
  );
  using tree = new OpenTree(root);
  for (const { path } of lost) {
    const copy = diskPath(home, copyPathOf(path));
    const place = dirname(diskPath(home, path));
    const text = path.endsWith(".git")
      ? `gitdir: ${relative(place, copy)}\n`
      : `${relative(dirname(place), join(copy, "objects"))}\n`;
    const file = systemPath(tree.at(path));
    rmSync(file, { force: true });
    writeFileSync(file, text, { flag: "wx", mode: 0o644 });
  }
  return lost.map(({ path }) => path);
}

/** Paths that lead outside according to a complete copy. The copies may come from an archive: nothing in them is trusted. */
export function pointersWithCopy(root: string): string[] {
  return namesIn(join(root, COPIES)).flatMap((name) => {
    const pointer = readPointerOf(join(root, COPIES, name, DESCRIPTION));
    return pointer !== undefined && copyPathOf(pointer) === `${COPIES}/${name}` ? [pointer] : [];
  });
}

const MAX_BYTES = 64 * 1024;

function readPointerOf(file: string): string | undefined {
  try {
    const stat = lstatSync(file);
    if (!stat.isFile() || stat.size > MAX_BYTES) return undefined;
    const { pointer } = JSON.parse(readFileSync(file, "utf8"));
    const isInside = typeof pointer === "string" && !/(?:^|\/)\.{0,2}(?:\/|$)|\0/.test(pointer);
    return isInside && isGitPointer({ path: pointer, type: "file" }) ? pointer : undefined;
  } catch {
    return undefined;
  }
}

function namesIn(directory: string): string[] {
  return quietly(() => (lstatSync(directory).isDirectory() ? readdirSync(directory) : [])) ?? [];
}

/** Borrowed objects may be shared. HEAD and index may not: a repository records the path of each linked worktree. */
function isLost({ path, targets }: Outside, home: TreeRoot, isDuplicate: boolean): boolean {
  if (!path.endsWith(".git")) return !targets.every((target) => realPathOf(target) !== undefined);
  const [target = ""] = targets;
  if (realPathOf(target) === undefined) return true;
  // There is only one worktree in place; after a move, its repository is repaired by git.
  if (outsideWorktree(home) !== undefined && isInWorktree(path)) return false;
  try {
    const worktree = dirname(resolve(target, readFileSync(join(target, "gitdir"), "utf8").trim()));
    return (
      worktree !== dirname(diskPath(home, path)) &&
      realPathOf(worktree) !== realPathOf(dirname(diskPath(home, path)))
    );
  } catch {
    return isDuplicate;
  }
}

function realPathOf(path: string): string | undefined {
  return quietly(() => realpathSync(path));
}
