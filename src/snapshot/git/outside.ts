// Finds repositories of a cell that keep their HEAD, index or objects outside of it: linked worktrees, separate git
// directories and borrowed objects. `outside-copy` makes a copy of those in the cell; a checkpoint without one says so
// (INV-6).
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync, realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { diskPath, outsidePaths, rootOf, type TreeRoot } from "../model/cell-tree.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";

/** Files in which git stores the path of another directory: of the repository, of its shared part, of borrowed objects. */
const POINTER = /(?:^|\/)(?:\.git|commondir|objects\/info\/alternates)$/;
const MAX_BYTES = 64 * 1024;
const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Whether git would look elsewhere because of this path. */
export function isGitPointer({ path, type }: { readonly path: string; readonly type: EntryType }): boolean {
  return (type === "file" || type === "symlink") && POINTER.test(path);
}

/** A path that leads out of the cell, and where to. */
export interface Outside {
  readonly path: string;
  readonly targets: readonly string[];
}

/** Those of the paths that lead out of the cell. `home` is where the cell will be, if it is elsewhere now. */
export function findOutside(root: TreeRoot, paths: Iterable<string>, home = root): Outside[] {
  const roots = [root, home].flatMap((each) => [rootOf(each), ...outsidePaths(each)]);
  roots.push(realpathSync(rootOf(root)));
  const isInside = (target: string) => roots.some((each) => target === each || target.startsWith(`${each}/`));
  using tree = new OpenTree(root);
  return [...paths].flatMap((path) => {
    const targets = targetsOf(tree, path)
      .map((target) => resolve(dirname(diskPath(home, path)), target))
      .filter((target) => !isInside(target));
    return targets.length > 0 ? [{ path, targets }] : [];
  });
}

/** Why there is no copy of what is outside, or none as of now. */
export interface CopyProblem {
  readonly problem: string | undefined;
  readonly hasEarlierCopy: boolean;
}

/** The flaw of a checkpoint that does not hold what is outside. */
export function asFlaw({ path, targets }: Outside, { problem, hasEarlierCopy }: CopyProblem): Flaw {
  const where = `${targets.join(", ")}, outside the cell`;
  const why = problem === undefined ? "" : ` (${problem})`;
  const what = path.endsWith("/alternates")
    ? `git objects are borrowed from ${where}`
    : `HEAD, index and objects of the repository are in ${where}`;
  const advice = path.endsWith("/alternates")
    ? "git repack -a -d copies them into the cell, then delete this file"
    : "a clone would be";
  const saved = hasEarlierCopy
    ? "only an earlier copy is saved, which a restore uses if they are gone"
    : `they are not saved; ${advice}`;
  return { path, kind: "degraded", reason: `${what}: ${saved}${why}` };
}

function targetsOf(tree: OpenTree, path: string): string[] {
  const text = readPointer(tree, path);
  if (text === undefined) return [];
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  // Relative to the directory of objects, not to its subdirectory info.
  if (path.endsWith("/alternates")) return lines.map((line) => (line.startsWith("/") ? line : `../${line}`));
  const [line = ""] = lines;
  if (!path.endsWith(".git")) return [line];
  return line.startsWith("gitdir: ") ? [line.slice("gitdir: ".length)] : [];
}

/** Undefined when the path is gone, or is neither a file nor a link. */
function readPointer(tree: OpenTree, path: string): string | undefined {
  try {
    const fd = openSync(systemPath(tree.at(path)), OPEN);
    try {
      if (!fstatSync(fd).isFile()) return undefined;
      const bytes = Buffer.alloc(MAX_BYTES);
      return bytes.toString("utf8", 0, readSync(fd, bytes));
    } finally {
      closeSync(fd);
    }
  } catch {
    return readLink(tree, path);
  }
}

function readLink(tree: OpenTree, path: string): string | undefined {
  try {
    const target = readlinkSync(systemPath(tree.at(path)));
    return path.endsWith(".git") ? `gitdir: ${target}` : target;
  } catch {
    // What cannot be read is reported by the capture itself.
    return undefined;
  }
}
