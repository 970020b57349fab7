// Watches directory trees with one inotify queue and collects what changed in each. Runs in a worker thread; the calls of the
// kernel are injected.
//
// Nothing is missed silently. An event is handled some time after it happened, so its path may name another directory by then.
// The move that caused this is still in the queue and corrects it: a directory that appears is first watched, then read, and
// everything below it counts as changed. So once the queue is empty, every directory is watched under its current path. When
// events are lost (queue overflow, unmount, a root that moved, a burst), the set is unknown and the whole tree is watched again.
//
// A large tree is read in parts, so that the others are not kept waiting. Until all of it has been read, its set is unknown.
import { lstatSync } from "node:fs";
import { quietly } from "../../platform/errors.ts";
import {
  IN_ATTRIB,
  IN_CREATE,
  IN_DELETE,
  IN_DELETE_SELF,
  IN_IGNORED,
  IN_ISDIR,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_Q_OVERFLOW,
  IN_UNMOUNT,
  type InotifyEvent,
} from "../../platform/libc/inotify.ts";
import { decodePath, joinPath } from "../../snapshot/model/path-bytes.ts";
import { createMatcher } from "../../snapshot/path-patterns.ts";
import { cellPath, type Directory, findChild, type Tree, type WatchedRoot } from "./directories.ts";
import { DirtyPaths, type TakenPaths, unknownPaths } from "./dirty-paths.ts";
import { findMountsOf, findRemote, type Mount } from "./mounts.ts";
import {
  type Calls,
  forget,
  type Inotify,
  isUnread,
  READ_AT_ONCE,
  readSome,
  release,
  UNREAD,
  watchOne,
} from "./watch-directories.ts";

/** Plain data: it is sent to the worker. */
export interface WatchedTree {
  readonly roots: readonly WatchedRoot[];
  /** Patterns of paths that are neither watched nor reported. */
  readonly ignore: readonly string[];
  /** Patterns of paths whose changes are in the set, but are no reason to save. */
  readonly quiet?: readonly string[];
}

/** The state of a watched tree. */
export interface TreeReport {
  readonly key: string;
  /** Changes since the tree was added that are a reason to save. */
  readonly changes: number;
  /** Why the tree is not watched; null: it is. */
  readonly unwatched: string | null;
}

export interface TreeWatches {
  add(key: string, tree: WatchedTree): void;
  remove(key: string): void;
  handle(event: InotifyEvent): void;
  /** During a burst: counts the event and makes the set of its tree unknown. */
  note(event: InotifyEvent): void;
  /** Begins to watch stale trees again. */
  refresh(): void;
  /** Reads some of the directories that wait to be read; returns whether more are waiting. */
  readOn(): boolean;
  /** Looks for new and removed mounts. */
  checkMounts(): void;
  /** What changed since the last call. The caller has handled all events. */
  take(key: string): TakenPaths;
  /** Returns a set that could not be saved. */
  putBack(key: string, taken: TakenPaths): void;
  /** Trees whose state has changed since the last report. */
  report(): TreeReport[];
}

const NAMES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
export function watchTrees(inotify: Inotify): TreeWatches {
  const trees = new Map<string, Tree>();
  const reported = new Map<string, string>();
  const calls: Calls = { inotify, watched: new Map() };
  return {
    add(key, { roots, ignore, quiet = [] }) {
      const tree: Tree = {
        key,
        roots,
        isIgnored: createMatcher(ignore),
        isQuiet: createMatcher(quiet),
        directories: new Set(),
        dirty: new DirtyPaths("changes before the watch began are unknown"),
        changes: 0,
        unwatched: null,
        isStale: true,
        unread: [],
        mounts: "",
        limit: undefined,
        pass: 0,
      };
      trees.set(key, tree);
      rewatch(calls, tree);
      readSome(calls, tree, READ_AT_ONCE);
    },
    remove(key) {
      const tree = trees.get(key);
      trees.delete(key);
      reported.delete(key);
      if (tree !== undefined) release(calls, [...tree.directories]);
      // Its watches are free for another tree now.
      for (const each of trees.values()) if (each.limit !== undefined) each.isStale = true;
    },
    handle(event) {
      if ((event.mask & IN_Q_OVERFLOW) !== 0) return lose(trees.values(), "the kernel's queue overflowed");
      // A copy: handling an event can change the list.
      for (const directory of [...(calls.watched.get(event.wd) ?? [])]) handleEvent(calls, directory, event);
    },
    note(event) {
      if ((event.mask & IN_Q_OVERFLOW) !== 0) return lose(trees.values(), "the kernel's queue overflowed");
      const found = calls.watched.get(event.wd) ?? [];
      lose(new Set(found.map(({ tree }) => tree)), "a burst of changes was not followed in detail");
    },
    refresh() {
      for (const tree of trees.values()) {
        // Trying costs as much as watching the whole tree.
        const hasNewLimit = tree.limit !== undefined && tree.limit !== inotify.limit();
        if (tree.isStale || hasNewLimit) rewatch(calls, tree);
      }
    },
    readOn() {
      const unread = [...trees.values()].filter(isUnread);
      for (const tree of unread) {
        readSome(calls, tree, Math.ceil(READ_AT_ONCE / unread.length));
        // What changed in the meantime was not reported.
        tree.changes += 1;
      }
      return unread.some(isUnread);
    },
    checkMounts() {
      const mounts = inotify.mounts();
      for (const tree of trees.values())
        if (describeMounts(tree, mounts) !== tree.mounts)
          lose([tree], "a file system was mounted or unmounted");
    },
    take(key) {
      const tree = trees.get(key);
      if (tree === undefined) return unknownPaths("it is not watched");
      if (tree.isStale) {
        rewatch(calls, tree);
        readSome(calls, tree, READ_AT_ONCE);
      }
      if (tree.unwatched !== null) return unknownPaths(tree.unwatched);
      const taken = tree.dirty.take();
      if (isUnread(tree)) tree.dirty.setUnknown(UNREAD);
      return taken;
    },
    putBack: (key, taken) => trees.get(key)?.dirty.putBack(taken),
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

/** Anything may have changed, and directories may be unwatched. */
function lose(trees: Iterable<Tree>, why: string): void {
  for (const tree of trees) {
    tree.changes += 1;
    tree.isStale = true;
    tree.unread.length = 0;
    tree.dirty.setUnknown(why);
  }
}

function describeMounts({ roots }: Tree, mounts: readonly Mount[]): string {
  return roots
    .flatMap(({ path }) => findMountsOf(mounts, path))
    .map(({ key }) => key)
    .join("\n");
}

/**
 * Begins to watch a tree, from its roots down. Watches that are in place stay: ending and adding them again would fill the queue
 * with one event each, and overflow it again.
 */
function rewatch(calls: Calls, tree: Tree): void {
  const mounts = calls.inotify.mounts();
  tree.mounts = describeMounts(tree, mounts);
  tree.isStale = false;
  tree.unread.length = 0;
  tree.limit = undefined;
  const own = tree.roots.flatMap(({ path }) => findMountsOf(mounts, path));
  tree.unwatched = findRemote(own) ?? findMountedFile(own) ?? null;
  tree.pass += 1;
  const roots = tree.unwatched === null ? tree.roots.map((root) => watchOne(calls, tree, root)) : [];
  const missing = tree.roots.find((_, index) => roots[index] === undefined);
  if (missing !== undefined && tree.unwatched === null) {
    tree.unwatched = `${missing.path} is gone or not accessible`;
    // It may come back.
    tree.isStale = true;
  }
  if (tree.unwatched === null) {
    tree.unread.push(...roots.filter((root) => root !== undefined));
    tree.dirty.setUnknown(UNREAD);
  } else {
    tree.dirty.setUnknown(tree.unwatched);
    release(calls, [...tree.directories]);
  }
}

/** Its changes are reported only in the directory that it was mounted from. */
function findMountedFile(mounts: readonly Mount[]): string | undefined {
  const file = mounts.find(({ path }) => quietly(() => lstatSync(path))?.isFile());
  return file && `${file.path} is a mounted file, whose changes inotify does not report`;
}

function handleEvent(calls: Calls, directory: Directory, event: InotifyEvent): void {
  const { tree } = directory;
  if (!tree.directories.has(directory)) return;
  const { mask } = event;
  if (event.name.length === 0) {
    handleOwnEvent(calls, directory, mask);
    return;
  }
  const name = decodePath(event.name);
  const path = cellPath(directory);
  const child = joinPath(path, name);
  // Every name that is added or removed changes the directory's mtime.
  if ((mask & NAMES) !== 0) tree.dirty.addPath(path);
  if (tree.isIgnored(child)) return;
  if (!tree.isQuiet(child)) tree.changes += 1;
  tree.dirty.addPath(child);
  if ((mask & IN_ISDIR) === 0) return;
  const known = findChild(directory, name);
  if ((mask & (IN_MOVED_FROM | IN_DELETE)) !== 0 && known !== undefined) forget(calls, known);
  // A change of permissions may open a directory that could not be watched.
  const isNew = (mask & (IN_CREATE | IN_MOVED_TO)) !== 0 || ((mask & IN_ATTRIB) !== 0 && known === undefined);
  if (!isNew) return;
  const watched = watchOne(calls, tree, { parent: directory, name });
  // It was found when its parent was read, and everything since then is reported.
  if (watched !== undefined && watched === known) return;
  tree.dirty.addTree(child);
  if (watched === undefined) return;
  const othersWait = isUnread(tree);
  tree.unread.push(watched);
  if (!othersWait) readSome(calls, tree, READ_AT_ONCE);
}

/** An event about the directory itself. */
function handleOwnEvent(calls: Calls, directory: Directory, mask: number): void {
  const { tree, parent } = directory;
  if ((mask & IN_UNMOUNT) !== 0) lose([tree], "a file system was unmounted");
  else if ((mask & IN_IGNORED) !== 0) forget(calls, directory, { keepsWatch: true });
  else {
    const path = cellPath(directory);
    if (!tree.isQuiet(path)) tree.changes += 1;
    tree.dirty.addPath(path);
  }
  // For other directories, the parent reports this too.
  if (parent === undefined && (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) !== 0)
    lose([tree], "the directory itself was moved or deleted");
}
