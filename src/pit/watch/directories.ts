// The watched directories of a tree. Each has its parent and its name, so that its path is always current. A watch
// belongs to an inode: the kernel returns the same descriptor after the directory was moved.
import { joinPath, systemPath } from "../../snapshot/model/path-bytes.ts";
import type { Matcher } from "../../snapshot/path-patterns.ts";
import type { DirtyPaths } from "./dirty-paths.ts";

/** A directory to watch; its content has the paths `prefix/…` in the tree. */
export interface WatchedRoot {
  readonly path: string;
  /** Empty for the top of the tree. */
  readonly prefix: string;
}

export interface Directory {
  readonly tree: Tree;
  readonly wd: number;
  readonly parent: Directory | undefined;
  /** As in src/snapshot/model/path-bytes.ts; of a root, its path in the tree. */
  readonly name: string;
  /** Where a root is on disk. */
  readonly rootPath: string | undefined;
  children: Map<string, Directory> | undefined;
  /** The last pass of `rewatch` that has seen it. */
  pass: number;
}

export interface Tree {
  readonly key: string;
  readonly roots: readonly WatchedRoot[];
  /** Neither watched nor reported. */
  readonly isIgnored: Matcher;
  /** In the set, but no reason to save. */
  readonly isQuiet: Matcher;
  readonly directories: Set<Directory>;
  readonly dirty: DirtyPaths;
  /** Changes that are a reason to save. */
  changes: number;
  /** Why it is not watched; null: it is. */
  unwatched: string | null;
  /** Some directories may be unwatched, or watched under an old path: `refresh` watches the tree again. */
  isStale: boolean;
  /** Watched directories that have not been read: what is below them is not watched. */
  readonly unread: Directory[];
  /** The kernel's limit of watches when it was reached by this tree. */
  limit: string | undefined;
  /** Mounts in it and above, when it was last watched. */
  mounts: string;
  pass: number;
}

/** Its path in the tree. */
export function cellPath({ parent, name }: Directory): string {
  return parent === undefined ? name : joinPath(cellPath(parent), name);
}

/** Its path on disk, as an argument of system calls. */
export function diskPathOf(directory: Directory): string | Buffer {
  return systemPath(diskText(directory));
}

export function childOnDisk(directory: Directory, name: string): string | Buffer {
  return systemPath(`${diskText(directory)}/${name}`);
}

function diskText({ parent, name, rootPath }: Directory): string {
  return parent === undefined ? rootPath! : `${diskText(parent)}/${name}`;
}

export function findChild({ children }: Directory, name: string): Directory | undefined {
  return children?.get(name);
}

export function attach(directory: Directory): void {
  const { parent, name, tree } = directory;
  tree.directories.add(directory);
  if (parent === undefined) return;
  parent.children ??= new Map();
  parent.children.set(name, directory);
}

/** Removes a directory and everything below from its tree; returns them all. */
export function detach(directory: Directory): Directory[] {
  const { parent, name } = directory;
  if (parent?.children?.get(name) === directory) parent.children.delete(name);
  const detached = [directory];
  for (let index = 0; index < detached.length; index += 1)
    for (const child of detached[index]!.children?.values() ?? []) detached.push(child);
  return detached.filter((each) => each.tree.directories.delete(each));
}
