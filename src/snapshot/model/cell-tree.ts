// Where the paths of a cell are on disk: below its root, except those of a worktree that is a directory elsewhere. In a
// checkpoint both are one tree, and the worktree is `worktree/…`. Pure.

export const WORKTREE = "worktree";

/** A worktree outside the cell. Plain data: it is passed to worker threads. */
export interface OutsideWorktree {
  /** Absolute, with links resolved. */
  readonly path: string;
  /** "device:inode" of the recorded directory; another one at this path is never opened. */
  readonly id: string;
}

/** A cell whose worktree is elsewhere. */
export interface CellTree {
  readonly root: string;
  readonly worktree: OutsideWorktree;
}

/** A plain directory, or a cell with its worktree elsewhere. */
export type TreeRoot = string | CellTree;

export function rootOf(tree: TreeRoot): string {
  return typeof tree === "string" ? tree : tree.root;
}

export function outsideWorktree(tree: TreeRoot): OutsideWorktree | undefined {
  return typeof tree === "string" ? undefined : tree.worktree;
}

/** The worktree's own path if it is elsewhere, for what looks at all places of a cell. */
export function outsidePaths(tree: TreeRoot): string[] {
  return typeof tree === "string" ? [] : [tree.worktree.path];
}

export function isInWorktree(path: string): boolean {
  return path.startsWith(WORKTREE) && (path.length === WORKTREE.length || path[WORKTREE.length] === "/");
}

/** Where a path of the tree is on disk; "." is the root itself. */
export function diskPath(tree: TreeRoot, path: string): string {
  if (typeof tree !== "string" && isInWorktree(path)) return tree.worktree.path + path.slice(WORKTREE.length);
  return path === "." ? rootOf(tree) : `${rootOf(tree)}/${path}`;
}

/** The path in the tree of an absolute path; undefined when it is in neither place. */
export function pathInTree(tree: TreeRoot, absolute: string): string | undefined {
  const outside = outsideWorktree(tree);
  const below = (directory: string) =>
    absolute === directory || absolute.startsWith(`${directory}/`)
      ? absolute.slice(directory.length + 1)
      : undefined;
  const inWorktree = outside === undefined ? undefined : below(outside.path);
  if (inWorktree !== undefined) return inWorktree === "" ? WORKTREE : `${WORKTREE}/${inWorktree}`;
  const inCell = below(rootOf(tree));
  return inCell === "" ? "." : inCell;
}
