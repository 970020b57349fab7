// Watches directory trees with one inotify queue and counts the changes in each. It reports that something changed, not what:
// a checkpoint walks the cell anyway, so a lost event delays it and never makes it incomplete. Runs in a worker thread; the
// calls of the kernel are injected.
import { type Dirent, readdirSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import {
  decodeEvents,
  IN_ATTRIB,
  IN_CLOSE_WRITE,
  IN_CREATE,
  IN_DELETE,
  IN_DELETE_SELF,
  IN_DONT_FOLLOW,
  IN_EXCL_UNLINK,
  IN_IGNORED,
  IN_ISDIR,
  IN_MODIFY,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_ONLYDIR,
  IN_Q_OVERFLOW,
  type InotifyEvent,
} from "../../platform/libc/inotify.ts";
import { createMatcher, type Matcher } from "../../snapshot/path-patterns.ts";

/** A directory to watch; its content has the paths `prefix/…` in the tree. */
export interface WatchedRoot {
  readonly path: string;
  /** Empty for the top of the tree. */
  readonly prefix: string;
}

/** Plain data: it is sent to the worker. */
export interface WatchedTree {
  readonly roots: readonly WatchedRoot[];
  /** Patterns of paths that are neither watched nor counted. */
  readonly ignore: readonly string[];
}

/** Changes of a tree since the last report. */
export interface TreeReport {
  readonly key: string;
  readonly changes: number;
  /** Why the tree is not watched; null: it is. */
  readonly unwatched: string | null;
}

/** The calls of the kernel; paths are bytes, because names need not be UTF-8. */
export interface Inotify {
  /** Throws an error with a code. */
  add(path: Buffer, mask: number): number;
  remove(wd: number): void;
}

export interface TreeWatches {
  add(key: string, tree: WatchedTree): void;
  remove(key: string): void;
  /** Handles what a read of the queue has returned. */
  handle(buffer: Buffer, length: number): void;
  /** What changed since the last call. */
  report(): TreeReport[];
}

interface Directory {
  readonly tree: Tree;
  readonly wd: number;
  readonly path: Buffer;
  /** Relative to the cell, as text for the patterns. */
  readonly name: string;
  readonly parent: Directory | undefined;
  /** By name, as latin1: one character per byte. */
  readonly children: Map<string, Directory>;
}

interface Tree {
  readonly key: string;
  readonly roots: readonly WatchedRoot[];
  readonly isIgnored: Matcher;
  readonly directories: Set<Directory>;
  changes: number;
  unwatched: string | null;
}

const MASK = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
const OPTIONS = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;
/** A directory that is gone, replaced or closed to this user is no failure: the walk reports what it cannot read. */
const EXPECTED = new Set(["ENOENT", "ENOTDIR", "EACCES", "ELOOP"]);

export function watchTrees(inotify: Inotify): TreeWatches {
  const trees = new Map<string, Tree>();
  /** The same directory may be in two trees. */
  const watched = new Map<number, Directory[]>();
  const reported = new Map<string, string>();
  const calls = { inotify, watched };
  return {
    add(key, { roots, ignore }) {
      const isIgnored = createMatcher(ignore);
      const tree: Tree = { key, roots, isIgnored, directories: new Set(), changes: 0, unwatched: null };
      trees.set(key, tree);
      watchRoots(calls, tree);
    },
    remove(key) {
      const tree = trees.get(key);
      trees.delete(key);
      reported.delete(key);
      for (const directory of tree?.directories ?? []) forget(calls, directory);
    },
    handle(buffer, length) {
      for (const event of decodeEvents(buffer, length)) {
        if ((event.mask & IN_Q_OVERFLOW) !== 0) for (const tree of trees.values()) rescan(calls, tree);
        // A copy: handling an event can change the list.
        for (const directory of [...(watched.get(event.wd) ?? [])]) handleEvent(calls, directory, event);
      }
    },
    report() {
      const reports: TreeReport[] = [];
      for (const { key, changes, unwatched } of trees.values()) {
        const text = `${changes} ${unwatched}`;
        if (reported.get(key) === text) continue;
        reported.set(key, text);
        reports.push({ key, changes, unwatched });
      }
      return reports;
    },
  };
}

interface Calls {
  readonly inotify: Inotify;
  readonly watched: Map<number, Directory[]>;
}

function watchRoots(calls: Calls, tree: Tree): void {
  for (const { path, prefix } of tree.roots) watchBelow(calls, tree, Buffer.from(path), prefix, undefined);
}

/** The queue overflowed: anything may have changed, and new directories may be unwatched. */
function rescan(calls: Calls, tree: Tree): void {
  if (tree.unwatched !== null) return;
  tree.changes += 1;
  for (const directory of [...tree.directories]) forget(calls, directory);
  watchRoots(calls, tree);
}

/** Watches a directory and everything below. The watch comes first: what appears while it is read is reported. */
function watchBelow(
  calls: Calls,
  tree: Tree,
  path: Buffer,
  name: string,
  parent: Directory | undefined,
): void {
  const waiting: Directory[] = [];
  const watch = (...place: [path: Buffer, name: string, parent: Directory | undefined]) => {
    const directory = watchOne(calls, tree, ...place);
    if (directory !== undefined) waiting.push(directory);
  };
  watch(path, name, parent);
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (tree.unwatched !== null) return;
    for (const entry of listDirectory(next.path)) {
      if (!entry.isDirectory()) continue;
      const child = join(next, entry.name);
      if (!tree.isIgnored(child.name)) watch(child.path, child.name, next);
    }
  }
}

function watchOne(
  calls: Calls,
  tree: Tree,
  path: Buffer,
  name: string,
  parent: Directory | undefined,
): Directory | undefined {
  if (tree.unwatched !== null) return undefined;
  let wd: number;
  try {
    wd = calls.inotify.add(path, MASK | OPTIONS);
  } catch (error) {
    const code = systemErrorCode(error) ?? String(error);
    if (!EXPECTED.has(code)) giveUp(calls, tree, code);
    return undefined;
  }
  const others = calls.watched.get(wd) ?? [];
  const known = others.find((each) => each.tree === tree);
  // It was moved within the tree, and is watched under its old name until the event of the move is handled.
  if (known !== undefined) forget(calls, known, { keepsWatch: true });
  const directory: Directory = { tree, wd, path, name, parent, children: new Map() };
  calls.watched.set(wd, [...(calls.watched.get(wd) ?? []), directory]);
  tree.directories.add(directory);
  parent?.children.set(baseName(path), directory);
  return directory;
}

function giveUp(calls: Calls, tree: Tree, code: string): void {
  tree.unwatched =
    code === "ENOSPC"
      ? `the kernel's limit of watched directories is reached: sysctl fs.inotify.max_user_watches`
      : `inotify_add_watch failed: ${code}`;
  for (const directory of [...tree.directories]) forget(calls, directory);
}

/** Ends the watches of a directory and everything that is known below it. */
function forget(calls: Calls, directory: Directory, { keepsWatch = false } = {}): void {
  const { tree, wd, parent, path } = directory;
  for (const child of [...directory.children.values()]) forget(calls, child);
  if (parent?.children.get(baseName(path)) === directory) parent.children.delete(baseName(path));
  if (!tree.directories.delete(directory)) return;
  const others = (calls.watched.get(wd) ?? []).filter((each) => each !== directory);
  if (others.length > 0) calls.watched.set(wd, others);
  else {
    calls.watched.delete(wd);
    if (!keepsWatch) calls.inotify.remove(wd);
  }
}

function handleEvent(calls: Calls, directory: Directory, { mask, name }: InotifyEvent): void {
  const { tree } = directory;
  if (!tree.directories.has(directory)) return;
  if ((mask & IN_IGNORED) !== 0) {
    forget(calls, directory, { keepsWatch: true });
    return;
  }
  if (name.length === 0) {
    tree.changes += 1;
    // A root that was moved or deleted is no longer this tree; others are reported by their parent, too.
    if ((mask & (IN_DELETE_SELF | IN_MOVE_SELF)) !== 0 && directory.parent === undefined)
      forget(calls, directory);
    return;
  }
  const child = join(directory, name);
  if (tree.isIgnored(child.name)) return;
  tree.changes += 1;
  if ((mask & IN_ISDIR) === 0) return;
  const known = directory.children.get(name.toString("latin1"));
  if ((mask & (IN_MOVED_FROM | IN_DELETE)) !== 0 && known !== undefined) forget(calls, known);
  if ((mask & (IN_CREATE | IN_MOVED_TO)) !== 0) {
    if (known !== undefined) forget(calls, known);
    watchBelow(calls, tree, child.path, child.name, directory);
  }
}

function join(directory: Directory, name: Buffer): { readonly path: Buffer; readonly name: string } {
  const text = name.toString("utf8");
  return {
    path: Buffer.concat([directory.path, SLASH, name]),
    name: directory.name === "" ? text : `${directory.name}/${text}`,
  };
}

const SLASH = Buffer.from("/");

function baseName(path: Buffer): string {
  return path.toString("latin1", path.lastIndexOf("/") + 1);
}

function listDirectory(path: Buffer): Dirent<NonSharedBuffer>[] {
  try {
    return readdirSync(path, { withFileTypes: true, encoding: "buffer" });
  } catch {
    // Gone again, or closed to this user: the walk reports it.
    return [];
  }
}
