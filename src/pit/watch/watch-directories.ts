// The watches of the directories of a tree: they are added from its roots down, some at a time, and end with the directory.
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { quietly, systemErrorCode } from "../../platform/errors.ts";
import {
  IN_ATTRIB,
  IN_CLOSE_WRITE,
  IN_CREATE,
  IN_DELETE,
  IN_DELETE_SELF,
  IN_DONT_FOLLOW,
  IN_EXCL_UNLINK,
  IN_MODIFY,
  IN_MOVE_SELF,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_ONLYDIR,
} from "../../platform/libc/inotify.ts";
import { decodePath, joinPath, systemPath } from "../../snapshot/model/path-bytes.ts";
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
import type { Mount } from "./mounts.ts";

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

export interface Calls {
  readonly inotify: Inotify;
  /** The same directory may be in two trees, and mounted at several places of one. */
  readonly watched: Map<number, Directory[]>;
}

const MASK = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
const OPTIONS = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;
/** A directory that is gone, replaced or not accessible is no failure: the walk reports what it cannot read. */
const EXPECTED = new Set(["ENOENT", "ENOTDIR", "EACCES", "ELOOP"]);
/** Directories to read without a pause: about 50 ms. */
export const READ_AT_ONCE = 1000;
export const UNREAD = "not all of its directories are watched yet";
const NO_WATCHES =
  "the kernel's limit of watched directories is reached; try: sysctl fs.inotify.max_user_watches=1048576";

export function isUnread({ unread }: Tree): boolean {
  return unread.length > 0;
}

/** Reads the directories of a tree that wait to be read, and those that it finds in them, but not more than this many. */
export function readSome(calls: Calls, tree: Tree, most: number): void {
  if (!isUnread(tree)) return;
  for (let count = 0; count < most && isUnread(tree); count += 1) {
    const next = tree.unread.pop()!;
    // It may be gone by now.
    if (tree.directories.has(next)) watchChildren(calls, next);
  }
  if (isUnread(tree)) tree.dirty.setUnknown(UNREAD);
  else
    release(
      calls,
      [...tree.directories].filter(({ pass }) => pass !== tree.pass),
    );
}

/** Watches the directories in a watched one. Its own watch came first: what appears while it is read is reported. */
function watchChildren(calls: Calls, parent: Directory): void {
  const { tree } = parent;
  const path = cellPath(parent);
  for (const entry of listDirectory(parent)) {
    if (!entry.isDirectory()) continue;
    const name = decodePath(entry.name);
    if (tree.isIgnored(joinPath(path, name))) continue;
    const directory = watchOne(calls, tree, { parent, name });
    if (tree.unwatched !== null) return;
    if (directory !== undefined) tree.unread.push(directory);
  }
}

type Place = WatchedRoot | { readonly parent: Directory; readonly name: string };

/** Undefined when there is no such directory, or none that this user can read. */
export function watchOne(calls: Calls, tree: Tree, place: Place): Directory | undefined {
  const onDisk = "parent" in place ? childOnDisk(place.parent, place.name) : systemPath(place.path);
  let wd: number;
  try {
    wd = calls.inotify.add(onDisk, MASK | OPTIONS);
  } catch (error) {
    const code = systemErrorCode(error) ?? String(error);
    if (!EXPECTED.has(code)) giveUp(calls, tree, code);
    return undefined;
  }
  const parent = "parent" in place ? place.parent : undefined;
  const name = "parent" in place ? place.name : place.prefix === "" ? "." : place.prefix;
  const places = (calls.watched.get(wd) ?? []).filter((each) => each.tree === tree);
  const known = places.find((each) => each.parent === parent && each.name === name);
  if (known !== undefined) {
    known.pass = tree.pass;
    return known;
  }
  // It was moved within the tree; the event of the move is still in the queue. Or it is mounted at several places.
  for (const each of places)
    if (!isSameFile(diskPathOf(each), onDisk)) forget(calls, each, { keepsWatch: true });
  const before = parent && findChild(parent, name);
  if (before !== undefined) forget(calls, before);
  const rootPath = "parent" in place ? undefined : place.path;
  const directory: Directory = { tree, wd, parent, name, rootPath, children: undefined, pass: tree.pass };
  calls.watched.set(wd, [...(calls.watched.get(wd) ?? []), directory]);
  attach(directory);
  return directory;
}

function isSameFile(...paths: [string | Buffer, string | Buffer]): boolean {
  const [one, other] = paths.map((path) => quietly(() => lstatSync(path)));
  return one !== undefined && one.dev === other?.dev && one.ino === other.ino;
}

function giveUp(calls: Calls, tree: Tree, code: string): void {
  tree.unwatched = code === "ENOSPC" ? NO_WATCHES : `inotify_add_watch failed: ${code}`;
  if (code === "ENOSPC") tree.limit = calls.inotify.limit();
  tree.dirty.setUnknown(tree.unwatched);
  tree.unread.length = 0;
  release(calls, [...tree.directories]);
}

/** Ends the watches of a directory and of everything that is known below it. */
export function forget(calls: Calls, directory: Directory, { keepsWatch = false } = {}): void {
  for (const each of detach(directory)) endWatch(calls, each, keepsWatch && each === directory);
}

export function release(calls: Calls, directories: readonly Directory[]): void {
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

function listDirectory(directory: Directory): Dirent<NonSharedBuffer>[] {
  try {
    return readdirSync(diskPathOf(directory), { withFileTypes: true, encoding: "buffer" });
  } catch {
    // Gone again, or not accessible: the walk reports it.
    return [];
  }
}
