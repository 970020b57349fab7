// Finds repositories of a cell that keep their HEAD, index or objects outside of it: linked worktrees, separate git
// directories and borrowed objects. A checkpoint does not hold those, and says so (INV-6).
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

/** Each of the paths that leads out of the cell, as a flaw that names where to. */
export function findOutside(root: TreeRoot, paths: Iterable<string>): Flaw[] {
  const flaws: Flaw[] = [];
  const roots = [rootOf(root), realpathSync(rootOf(root)), ...outsidePaths(root)];
  const isInside = (target: string) => roots.some((each) => target === each || target.startsWith(`${each}/`));
  using tree = new OpenTree(root);
  for (const path of paths) {
    const outside = targetsOf(tree, path)
      .map((target) => resolve(dirname(diskPath(root, path)), target))
      .filter((target) => !isInside(target));
    if (outside.length > 0) flaws.push({ path, kind: "degraded", reason: describe(path, outside) });
  }
  return flaws;
}

function describe(path: string, outside: readonly string[]): string {
  const where = `${outside.join(", ")}, outside the cell`;
  if (path.endsWith("/alternates"))
    return (
      `git objects are borrowed from ${where}: they are not saved; ` +
      "git repack -a -d copies them into the cell, then delete this file"
    );
  return `HEAD, index and objects of the repository are in ${where}: they are not saved; a clone would be`;
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
