// Watches directory trees with one inotify queue and collects what changed in each. Runs in a worker thread; the calls of the
// kernel are injected.
//
// Nothing is missed silently. An event is handled some time after it happened, so its path may name another directory by then.
// The move that caused this is still in the queue and corrects it: a directory that appears is first watched, then read, and
// everything below it counts as changed. So once the queue is empty, every directory is watched under its current path. When
// events are lost (queue overflow, unmount, a root that moved, a burst), the set is unknown and the whole tree is watched again.
import { type Dirent, readdirSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import {
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
  IN_UNMOUNT,
  type InotifyEvent,
} from "../../platform/libc/inotify.ts";
import { decodePath, joinPath, systemPath } from "../../snapshot/model/path-bytes.ts";
import { createMatcher } from "../../snapshot/path-patterns.ts";
import {
  attach,
  cellPath,
  childOnDisk,
  type Directory,
  detach,
  diskPathOf,
  findChild,
  type Tree,
  type WatchedRoot,
} from "./directories.ts";
import { DirtyPaths, type TakenPaths, unknownPaths } from "./dirty-paths.ts";
import { findRemote, type Mount, mountsOf } from "./mounts.ts";

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

/** The calls of the kernel; paths may be bytes, because names need not be UTF-8. */
export interface Inotify {
  /** Throws an error with a code. */
  add(path: string | Buffer, mask: number): number;
  remove(wd: number): void;
  /** The mount table. */
  mounts(): readonly Mount[];
  /** The limit of watches, as the kernel writes it. */
  limit(): string;
}

export interface TreeWatches {
  add(key: string, tree: WatchedTree): void;
  remove(key: string): void;
  handle(event: InotifyEvent): void;
  /** During a burst: counts the event and makes the set of its tree unknown. */
  note(event: InotifyEvent): void;
  /** Watches stale trees again. */
  refresh(): void;
  /** Looks for new and removed mounts. */
  checkMounts(): void;
  /** What changed since the last call. The caller has handled all events. */
  take(key: string): TakenPaths;
  /** Returns a set that could not be saved. */
  putBack(key: string, taken: TakenPaths): void;
  /** Trees whose state has changed since the last report. */
  report(): TreeReport[];
}

const MASK = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
const OPTIONS = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;
const NAMES = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
/** A directory that is gone, replaced or closed to this user is no failure: the walk reports what it cannot read. */
const EXPECTED = new Set(["ENOENT", "ENOTDIR", "EACCES", "ELOOP"]);
const NO_WATCHES =
  "the kernel's limit of watched directories is reached; try: sysctl fs.inotify.max_user_watches=1048576";

interface Calls {
  readonly inotify: Inotify;
  /** The same directory may be in two trees. */
  readonly watched: Map<number, Directory[]>;
}

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
        mounts: "",
        limit: undefined,
        pass: 0,
      };
      trees.set(key, tree);
      rewatch(calls, tree);
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
    checkMounts() {
      const mounts = inotify.mounts();
      for (const tree of trees.values())
        if (describeMounts(tree, mounts) !== tree.mounts)
          lose([tree], "a file system was mounted or unmounted");
    },
    take(key) {
      const tree = trees.get(key);
      if (tree === undefined) return unknownPaths("it is not watched");
      if (tree.isStale) rewatch(calls, tree);
      if (tree.unwatched !== null) return unknownPaths(tree.unwatched);
      return tree.dirty.take();
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
    tree.dirty.setUnknown(why);
  }
}

function describeMounts({ roots }: Tree, mounts: readonly Mount[]): string {
  return roots
    .flatMap(({ path }) => mountsOf(mounts, path))
    .map(({ key }) => key)
    .join("\n");
}

/**
 * Watches a tree from its roots down. Watches that are in place stay: ending and adding them again would fill the queue with
 * one event each, and overflow it again.
 */
function rewatch(calls: Calls, tree: Tree): void {
  const mounts = calls.inotify.mounts();
  tree.mounts = describeMounts(tree, mounts);
  tree.isStale = false;
  tree.limit = undefined;
  tree.unwatched = findRemote(tree.roots.flatMap(({ path }) => mountsOf(mounts, path))) ?? null;
  tree.pass += 1;
  const roots = tree.unwatched === null ? tree.roots.map((root) => watchOne(calls, tree, root)) : [];
  const missing = tree.roots.find((_, index) => roots[index] === undefined);
  if (missing !== undefined && tree.unwatched === null) {
    tree.unwatched = `${missing.path} cannot be watched: it is gone or closed`;
    // It may come back.
    tree.isStale = true;
  }
  for (const root of roots) if (root !== undefined && tree.unwatched === null) watchBelow(calls, root);
  if (tree.unwatched !== null) tree.dirty.setUnknown(tree.unwatched);
  const isGone = ({ pass }: Directory) => tree.unwatched !== null || pass !== tree.pass;
  release(calls, [...tree.directories].filter(isGone));
}

/** Watches everything below a watched directory. The watch comes first: what appears while it is read is reported. */
function watchBelow(calls: Calls, top: Directory): void {
  const { tree } = top;
  const waiting = [top];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const path = cellPath(next);
    for (const entry of listDirectory(next)) {
      if (!entry.isDirectory()) continue;
      const name = decodePath(entry.name);
      if (tree.isIgnored(joinPath(path, name))) continue;
      const directory = watchOne(calls, tree, { parent: next, name });
      if (tree.unwatched !== null) return;
      if (directory !== undefined) waiting.push(directory);
    }
  }
}

type Place = WatchedRoot | { readonly parent: Directory; readonly name: string };

/** Undefined when there is no such directory, or none that this user can read. */
function watchOne(calls: Calls, tree: Tree, place: Place): Directory | undefined {
  let wd: number;
  try {
    const onDisk = "parent" in place ? childOnDisk(place.parent, place.name) : systemPath(place.path);
    wd = calls.inotify.add(onDisk, MASK | OPTIONS);
  } catch (error) {
    const code = systemErrorCode(error) ?? String(error);
    if (!EXPECTED.has(code)) giveUp(calls, tree, code);
    return undefined;
  }
  const parent = "parent" in place ? place.parent : undefined;
  const name = "parent" in place ? place.name : place.prefix === "" ? "." : place.prefix;
  const others = calls.watched.get(wd) ?? [];
  const known = others.find((each) => each.tree === tree);
  if (known !== undefined) {
    known.pass = tree.pass;
    if (known.parent === parent && known.name === name) return known;
    // It was moved within the tree; the event of the move is still in the queue.
    forget(calls, known, { keepsWatch: true });
  }
  const before = parent && findChild(parent, name);
  if (before !== undefined) forget(calls, before);
  const rootPath = "parent" in place ? undefined : place.path;
  const directory: Directory = { tree, wd, parent, name, rootPath, children: undefined, pass: tree.pass };
  calls.watched.set(wd, [...(calls.watched.get(wd) ?? []), directory]);
  attach(directory);
  return directory;
}

function giveUp(calls: Calls, tree: Tree, code: string): void {
  tree.unwatched = code === "ENOSPC" ? NO_WATCHES : `inotify_add_watch failed: ${code}`;
  if (code === "ENOSPC") tree.limit = calls.inotify.limit();
  tree.dirty.setUnknown(tree.unwatched);
  release(calls, [...tree.directories]);
}

/** Ends the watches of a directory and of everything that is known below it. */
function forget(calls: Calls, directory: Directory, { keepsWatch = false } = {}): void {
  for (const each of detach(directory)) endWatch(calls, each, keepsWatch && each === directory);
}

function release(calls: Calls, directories: readonly Directory[]): void {
  for (const directory of directories) forget(calls, directory);
}

function endWatch({ inotify, watched }: Calls, directory: Directory, keepsWatch: boolean): void {
  const { wd } = directory;
  const others = (watched.get(wd) ?? []).filter((each) => each !== directory);
  if (others.length > 0) watched.set(wd, others);
  else {
    watched.delete(wd);
    if (!keepsWatch) inotify.remove(wd);
  }
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
  if (watched !== undefined) watchBelow(calls, watched);
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

function listDirectory(directory: Directory): Dirent<NonSharedBuffer>[] {
  try {
    return readdirSync(diskPathOf(directory), { withFileTypes: true, encoding: "buffer" });
  } catch {
    // Gone again, or closed to this user: the walk reports it.
    return [];
  }
}
