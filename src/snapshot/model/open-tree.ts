// Reaches the paths of a directory tree through open descriptors of its directories, so that a directory that another
// process replaces by a link is never followed out of the tree. `O_NOFOLLOW` alone checks only the last component of a
// path. Linux resolves names below `/proc/self/fd/N`, macOS below `/.vol/<device>/<inode>`; where neither works, every
// parent is checked immediately before each use.
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lchmodSync,
  lstatSync,
  openSync,
  statSync,
} from "node:fs";
import { LazarusError, refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { type FileStat, findStat, findStatIn } from "../../platform/file-stat.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import {
  diskPath,
  isInWorktree,
  type OutsideWorktree,
  outsideWorktree,
  rootOf,
  type TreeRoot,
  WORKTREE,
} from "./cell-tree.ts";
import { joinPath, parentPath, systemPath } from "./path-bytes.ts";

const isDarwin = process.platform === "darwin";
/** Only names the file: needs no permission on it and does not open a FIFO. Node has no constant for it. */
const O_PATH = process.platform === "linux" ? 0o10000000 : 0;
/** Node adds it to every file that it opens itself. */
const O_CLOEXEC = 0o2000000;
const REACH = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | O_PATH;
const REACH_DIRECTORY = REACH | constants.O_DIRECTORY;
/** openat2 refuses flags that have no effect with O_PATH. */
const OPEN_BELOW = REACH_DIRECTORY & ~constants.O_NONBLOCK;
/** Open descriptors per tree. Paths arrive sorted, so a few directories are enough. */
const MAX_OPEN = 32;

interface OpenDirectory {
  readonly fd: number;
  readonly anchor: string;
}

export interface OpenTreeOptions {
  /** Called with every directory that is opened, and a path to it for system calls that follow links. */
  readonly onOpen?: (path: string, directory: string) => void;
  /** A path to an open directory that no rename or link can redirect; tests inject one that does not work. */
  readonly anchorOf?: (fd: number) => string;
}

/**
 * Paths are relative to the root, which may be a link itself. A worktree elsewhere is opened when it is first needed, and
 * only if it is the recorded directory. Returned paths are for the system calls that follow
 * immediately; only the two most recent ones are certain to be valid. All methods throw ENOENT, or ENOTDIR when a parent
 * is not a real directory.
 */
export class OpenTree implements Disposable {
  private readonly tree: TreeRoot;
  private readonly outside: OutsideWorktree | undefined;
  private readonly onOpen: OpenTreeOptions["onOpen"];
  /** Least recently used first. */
  private readonly open = new Map<string, OpenDirectory>();
  private readonly hasAnchors: boolean;
  private lastPath = ".";
  private last: OpenDirectory;
  private readonly top: OpenDirectory;
  private worktree: OpenDirectory | undefined;

  constructor(tree: TreeRoot, { onOpen, anchorOf = systemAnchor }: OpenTreeOptions = {}) {
    const root = rootOf(tree);
    this.tree = tree;
    this.outside = outsideWorktree(tree);
    this.onOpen = onOpen;
    const fd = openRoot(root);
    const anchor = anchorOf(fd);
    this.hasAnchors = isAnchor(fd, anchor);
    this.top = { fd, anchor: this.hasAnchors ? anchor : root };
    this.last = this.top;
    onOpen?.(".", this.top.anchor);
  }

  /** A path for system calls that do not follow links. */
  at(path: string): string {
    if (path === ".") return this.directory(path);
    if (path === WORKTREE && this.outside !== undefined) return this.outside.path;
    const slash = path.lastIndexOf("/");
    return `${this.enter(slash < 0 ? "." : path.slice(0, slash)).anchor}/${path.slice(slash + 1)}`;
  }

  /** The stat of a path, which does not follow links; undefined when there is nothing. A name in an open directory is found sooner. */
  stat(path: string, stat: FileStat): FileStat | undefined {
    const slash = path.lastIndexOf("/");
    const isRoot = path === "." || (path === WORKTREE && this.outside !== undefined);
    const name = systemPath(path.slice(slash + 1));
    if (!isRoot && typeof name === "string") {
      const { fd } = this.enter(slash < 0 ? "." : path.slice(0, slash));
      const found = fd < 0 ? undefined : findStatIn(fd, name, stat);
      if (found !== undefined) return found;
    }
    return findStat(systemPath(this.at(path)), stat);
  }

  /** Opens a file. One system call where Linux has openat2, which a sandbox may forbid; then through `at`. */
  openFile(path: string, flags: number): number {
    const isOutside = this.outside !== undefined && isInWorktree(path);
    const name = isOutside ? path.slice(WORKTREE.length + 1) : path;
    const fd = openBelow(isOutside ? this.reach(WORKTREE).fd : this.top.fd, name, flags);
    return fd >= 0 ? fd : openSync(systemPath(this.at(path)), flags);
  }

  /** A path to a directory itself, for any system call and as the prefix of names in it. */
  directory(path: string): string {
    return `${this.enter(path).anchor}/.`;
  }

  /** Closes a directory that was removed or moved, and everything below it. By default, every directory but the roots. */
  forget(path = "."): void {
    for (const [known, { fd }] of this.open) {
      if (path !== "." && known !== path && !known.startsWith(`${path}/`)) continue;
      closeSync(fd);
      this.open.delete(known);
    }
    this.lastPath = ".";
    this.last = this.top;
  }

  [Symbol.dispose](): void {
    for (const { fd } of this.open.values()) closeSync(fd);
    this.open.clear();
    if (this.worktree !== undefined) closeSync(this.worktree.fd);
    closeSync(this.top.fd);
  }

  private enter(path: string): OpenDirectory {
    if (!this.hasAnchors) return this.check(path);
    if (path === this.lastPath) return this.last;
    const found = path === "." ? this.top : this.reach(path);
    this.lastPath = path;
    this.last = found;
    return found;
  }

  private reach(path: string): OpenDirectory {
    if (path === ".") return this.top;
    if (path === WORKTREE && this.outside !== undefined) {
      this.worktree ??= this.openOutside(this.outside);
      return this.worktree;
    }
    const known = this.open.get(path);
    if (known !== undefined) {
      this.open.delete(path);
      this.open.set(path, known);
      return known;
    }
    const parent = this.reach(parentPath(path));
    const name = path.slice(path.lastIndexOf("/") + 1);
    const below = openBelow(parent.fd, name, OPEN_BELOW);
    const fd = below >= 0 ? below : openSync(systemPath(`${parent.anchor}/${name}`), REACH_DIRECTORY);
    const directory = { fd, anchor: systemAnchor(fd) };
    this.open.set(path, directory);
    if (this.open.size > MAX_OPEN) this.closeOldest();
    this.onOpen?.(path, directory.anchor);
    return directory;
  }

  private openOutside({ path, id }: OutsideWorktree): OpenDirectory {
    const fd = openSync(systemPath(path), REACH_DIRECTORY);
    const { dev, ino } = fstatSync(fd, { bigint: true });
    if (`${dev}:${ino}` !== id) {
      closeSync(fd);
      throw new LazarusError("WORKTREE_REPLACED", `${path} was replaced by another directory`, {
        details: { path },
      });
    }
    const directory = { fd, anchor: systemAnchor(fd) };
    this.onOpen?.(WORKTREE, directory.anchor);
    return directory;
  }

  private closeOldest(): void {
    for (const [path, directory] of this.open) {
      if (directory === this.last) continue;
      closeSync(directory.fd);
      this.open.delete(path);
      return;
    }
  }

  /** Without anchors: a parent could still be replaced between this check and the call. */
  private check(path: string): OpenDirectory {
    let checked = ".";
    for (const name of path === "." ? [] : path.split("/")) {
      checked = joinPath(checked, name);
      const place = diskPath(this.tree, checked);
      if (!lstatSync(systemPath(place)).isDirectory())
        throw Object.assign(new Error(`ENOTDIR: not a directory '${checked}'`), { code: "ENOTDIR" });
      this.onOpen?.(checked, place);
    }
    return { fd: -1, anchor: diskPath(this.tree, path) };
  }
}

function openRoot(root: string): number {
  try {
    return openSync(systemPath(root), (O_PATH || constants.O_RDONLY) | constants.O_DIRECTORY);
  } catch (error) {
    refuseExhaustion(error, `opening ${root}`, root);
    throw error;
  }
}

let posix: Posix | null | undefined;

/** Negative where Linux's openat2 cannot be used or fails: then the ordinary call says why. */
function openBelow(directory: number, path: string, flags: number): number {
  if (posix === undefined) posix = loadPosix();
  const name = systemPath(path);
  return typeof name === "string" && posix !== null
    ? posix.openBeneath(directory, name, flags | O_CLOEXEC)
    : -1;
}

function loadPosix(): Posix | null {
  const support = posixSupport();
  return support.ok && process.platform === "linux" ? support.posix : null;
}

function systemAnchor(fd: number): string {
  if (!isDarwin) return `/proc/self/fd/${fd}`;
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `/.vol/${dev}/${ino}`;
}

function isAnchor(fd: number, anchor: string): boolean {
  const same = (a: BigIntStats, b: BigIntStats | undefined) => a.dev === b?.dev && a.ino === b.ino;
  try {
    return same(
      fstatSync(fd, { bigint: true }),
      statSync(`${anchor}/.`, { bigint: true, throwIfNoEntry: false }),
    );
  } catch {
    return false;
  }
}

/** chmod that does not follow a link in the last component. */
export function changeMode(path: string | Buffer, mode: number): void {
  if (isDarwin) {
    lchmodSync(path, mode);
    return;
  }
  const fd = openSync(path, REACH);
  try {
    if (fstatSync(fd).isSymbolicLink())
      throw Object.assign(new Error("ELOOP: a symbolic link has no mode"), { code: "ELOOP" });
    chmodSync(`/proc/self/fd/${fd}`, mode);
  } catch (error) {
    // Without /proc the descriptor itself cannot be changed.
    if (systemErrorCode(error) !== "ENOENT" || O_PATH === 0) throw error;
    chmodSync(path, mode);
  } finally {
    closeSync(fd);
  }
}
