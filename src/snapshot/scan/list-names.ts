// The names in a directory of a cell, exact even when they are not UTF-8.
import { readdirSync } from "node:fs";
import { type TreeRoot, WORKTREE } from "../model/cell-tree.ts";
import type { OpenTree } from "../model/open-tree.ts";
import { decodePath, encodePath, systemPath } from "../model/path-bytes.ts";

const REPLACEMENT = "\ufffd";

/** The names in a directory of a tree. The root includes `worktree` even if the worktree is elsewhere. */
export function listTreeNames(root: TreeRoot, tree: OpenTree, path: string): string[] {
  const names = listExactNames(tree.directory(path));
  const isHidden = path === "." && typeof root !== "string" && !names.includes(WORKTREE);
  return isHidden ? [...names, WORKTREE] : names;
}

/** Names as strings, exact even when they are not UTF-8. */
export function listExactNames(directory: string): string[] {
  const names = readdirSync(systemPath(directory));
  if (!names.some((name) => name.includes(REPLACEMENT))) return names;
  return readdirSync(encodePath(directory), { encoding: "buffer" }).map(decodePath);
}
