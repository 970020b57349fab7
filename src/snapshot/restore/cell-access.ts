// All access of a restore to the files of a cell, through open directories (`OpenTree`): a link that is planted in the
// middle of a restore cannot redirect anything. Files that are in no checkpoint are never destroyed (INV-3): they are
// moved next to the cell, and each becomes a flaw.
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  cpSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { outsideWorktree, rootOf, type TreeRoot, WORKTREE } from "../model/cell-tree.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { systemPath } from "../model/path-bytes.ts";
import type { Capabilities } from "./make-path.ts";
import type { Fingerprint } from "./plan.ts";
import { ancestors } from "./scope.ts";

export interface CellAccess extends Disposable {
  readonly flaws: Flaw[];
  /** A path for the system calls that follow immediately and that follow no link. Throws when it cannot be reached. */
  at(path: string): string;
  /** A path to a directory itself. */
  directory(path: string): string;
  /** lstat; undefined when there is nothing, or a parent is not a real directory. */
  stat(path: string): BigIntStats | undefined;
  /** Whether all parents of `path` are real directories; makes them writable for their owner. */
  isReachable(path: string): boolean;
  /** Must be called after a directory was made, moved or removed. Default: looks at all directories again. */
  forget(path?: string): void;
  /** Whether this is the directory of a worktree elsewhere: its content is restored, the directory is never replaced. */
  isFixed(path: string): boolean;
  /** Moves what is at `path` out of the cell, and adds a flaw that says where. */
  moveAside(path: string, reason: string): void;
  /** Original modes of directories that were made writable, by path. */
  readonly widened: ReadonlyMap<string, number>;
}

const OWNER_ALL = 0o700;
/** A parent is missing or is not a directory. */
const UNREACHABLE = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

export interface CellAccessOptions {
  readonly tree: TreeRoot;
  /** Directory for files that are in no checkpoint. */
  readonly aside: string;
  readonly capabilities: Capabilities;
}

export function createCellAccess({ tree: roots, aside, capabilities }: CellAccessOptions): CellAccess {
  const flaws: Flaw[] = [];
  const widened = new Map<string, number>();
  /** Anyone but root needs the owner's permission bits to work in a directory. */
  const widen = (path: string, directory: string) => {
    const mode = statSync(directory).mode & 0o7777;
    if ((mode & OWNER_ALL) === OWNER_ALL || widened.has(path)) return;
    try {
      chmodSync(directory, mode | OWNER_ALL);
      widened.set(path, mode);
    } catch {
      // Not our directory: the step that needs it reports the error.
    }
  };
  const tree = new OpenTree(roots, capabilities.owners ? {} : { onOpen: widen });
  const at = (path: string) => (path === "." ? rootOf(roots) : tree.at(path));
  const reaching = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      if (UNREACHABLE.has(systemErrorCode(error) ?? "")) return undefined;
      throw error;
    }
  };
  return {
    flaws,
    widened,
    isFixed: (path) => path === WORKTREE && outsideWorktree(roots) !== undefined,
    at,
    directory: (path) => tree.directory(path),
    stat: (path) => reaching(() => lstatSync(systemPath(at(path)), { bigint: true, throwIfNoEntry: false })),
    isReachable: (path) => reaching(() => at(path)) !== undefined,
    forget: (path) => tree.forget(path),
    moveAside(path, reason) {
      mkdirSync(aside, { recursive: true, mode: 0o700 });
      using place = new OpenTree(aside);
      const name = makePlace(place, path);
      moveOut(systemPath(at(path)), systemPath(place.at(name)));
      tree.forget(path);
      crashPoint("snapshot.restore.set-aside");
      flaws.push({ path, kind: "degraded", reason: `${reason}; it was moved to ${join(aside, name)}` });
    },
    [Symbol.dispose]: () => tree[Symbol.dispose](),
  };
}

/** By rename; a copy where the worktree is on another file system. */
function moveOut(from: string | Buffer, to: string | Buffer): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    copyOut(from, to, error);
    rmSync(from, { recursive: true });
  }
}

function copyOut(from: string | Buffer, to: string | Buffer, error: unknown): void {
  const stat = lstatSync(from);
  if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from, { encoding: "buffer" }), to);
  else if (stat.isFile()) {
    copyFileSync(from, to, constants.COPYFILE_EXCL);
    const fd = openSync(to, "r");
    fsyncSync(fd);
    closeSync(fd);
    utimesSync(to, stat.atime, stat.mtime);
  } else if (stat.isDirectory() && typeof from === "string" && typeof to === "string")
    cpSync(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
  else throw error;
}

/** A free name for a path that is moved aside; makes its parents. */
function makePlace(aside: OpenTree, path: string): string {
  for (const directory of ancestors(path).reverse()) {
    if (directory === "." || exists(aside, directory)) continue;
    mkdirSync(systemPath(aside.at(directory)), 0o700);
  }
  let name = path;
  for (let n = 1; exists(aside, name); n += 1) name = `${path}.${n}`;
  return name;
}

function exists(tree: OpenTree, path: string): boolean {
  return lstatSync(systemPath(tree.at(path)), { throwIfNoEntry: false }) !== undefined;
}

/** Undefined for sockets, devices and the like. */
export function typeOf(stat: BigIntStats): EntryType | undefined {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "directory";
  if (stat.isSymbolicLink()) return "symlink";
  return stat.isFIFO() ? "fifo" : undefined;
}

/** Whether an lstat matches a fingerprint. Times of directories are ignored: they change with every name in them. */
export function matches(stat: BigIntStats, expected: Omit<Fingerprint, "mode"> | null): boolean {
  if (expected === null || typeOf(stat) !== expected.type) return false;
  if (expected.type === "directory") return true;
  const same = stat.mtimeNs === BigInt(expected.mtimeSec) * 1_000_000_000n + BigInt(expected.mtimeNs);
  return same && (expected.type !== "file" || Number(stat.size) === expected.size);
}
