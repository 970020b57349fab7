// Reads the metadata of a path: type, mode, owner, nanosecond time, xattrs, the target of a link, and the extents of a
// sparse file. Never follows a link, never blocks on a FIFO. Callers pass paths that lead through open directories of the
// cell (`OpenTree`), so that no parent is a link either.
import { constants, openSync, readlinkSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { createStat, ctimeMs, type FileStat, hasFileType, statPath } from "../../platform/file-stat.ts";
import { posixSupport } from "../../platform/posix.ts";
import { type CapturedItem, type CaptureItem, LIVE_FILE } from "../model/capture-item.ts";
import type { EntryType } from "../model/entry.ts";
import type { OpenTree } from "../model/open-tree.ts";
import { decodePath, systemPath } from "../model/path-bytes.ts";
import { changedType } from "./read-failure.ts";

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const { S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO } = constants;
const MODES: Readonly<Record<EntryType, number>> = {
  file: S_IFREG,
  directory: S_IFDIR,
  symlink: S_IFLNK,
  fifo: S_IFIFO,
};

/** A captured item under construction. Mutable: copying 100,000 of them would keep the garbage collector busy. */
export type Described = {
  -readonly [key in keyof Omit<CapturedItem, "entry">]: CapturedItem[key];
} & { readonly entry: { -readonly [key in keyof CapturedItem["entry"]]: CapturedItem["entry"][key] } };

/** The path of an item in the cell, for the call that follows. */
export function livePath(tree: OpenTree, item: CaptureItem): string | Buffer {
  return systemPath(tree.at(item.path));
}

/** Computed where it is needed: it opens the directories above the item, and most files are only opened themselves. */
export type LivePath = () => string | Buffer;

/** Opens the file itself, or the copy of a database. */
export function openItem(tree: OpenTree, { path, source }: CaptureItem): number {
  const isCopied = source !== undefined && source !== LIVE_FILE;
  return isCopied ? openSync(systemPath(source), READ_FLAGS) : tree.openFile(path, READ_FLAGS);
}

/** Reused: a thread describes one path at a time. */
const seen = createStat();

/** Describes a directory, symlink or FIFO without opening it. */
export function describeOther(item: CaptureItem, file: string | Buffer): Described {
  const stat = statPath(file, seen);
  if (!hasFileType(stat, MODES[item.type])) throw changedType();
  const described = describe(item, () => file, stat);
  if (item.type === "symlink")
    described.entry.target = decodePath(readlinkSync(file, { encoding: "buffer" }));
  return described;
}

/** Describes a file without its content. The backup of a database gets the metadata of the live file. */
export function describeFile(item: CaptureItem, live: LivePath, stat: FileStat, fd: number): Described {
  if (!hasFileType(stat, S_IFREG)) throw changedType();
  const described =
    item.source === undefined ? describe(item, live, stat, fd) : describe(item, live, statPath(live(), seen));
  described.entry.size = stat.size;
  const extents = findExtents(fd, stat);
  if (extents !== undefined) described.entry.extents = extents;
  return described;
}

function describe(item: CaptureItem, live: LivePath, stat: FileStat, fd?: number): Described {
  const described: Described = {
    entry: {
      path: item.path,
      type: item.type,
      mode: stat.mode & 0o7777,
      uid: stat.uid,
      gid: stat.gid,
      mtimeSec: stat.mtimeSec,
      mtimeNs: stat.mtimeNs,
      size: 0,
      sha256: "",
    },
    mark: { ctimeMs: ctimeMs(stat), ino: stat.ino, nlink: stat.nlink },
  };
  if (item.group !== undefined) described.entry.group = item.group;
  readXattrs(described, live, fd);
  return described;
}

function readXattrs(described: Described, live: LivePath, fd: number | undefined): void {
  const support = posixSupport();
  if (!support.ok) {
    described.degraded = `extended attributes cannot be read: ${support.reason}`;
    return;
  }
  try {
    if (fd !== undefined && !support.posix.hasXattrs(fd)) return;
    const xattrs = support.posix.listXattrs(live());
    if (xattrs.length > 0)
      described.entry.xattrs = xattrs.map(({ name, value }) => [name, value.toString("base64")] as const);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT") throw error;
    described.degraded = `extended attributes cannot be read: ${code}`;
  }
}

/** The extents of a sparse file; undefined for a dense one. */
function findExtents(fd: number, { size, blocks }: FileStat): [number, number][] | undefined {
  if (size === 0 || blocks * 512 >= size) return undefined;
  const support = posixSupport();
  if (!support.ok) return undefined;
  const extents: [number, number][] = [];
  let offset = 0;
  while (offset < size) {
    const data = support.posix.nextData(fd, offset);
    if (data === undefined || data.start >= size) break;
    const end = Math.min(data.end, size);
    extents.push([data.start, end - data.start]);
    offset = end;
  }
  const dense = extents.length === 1 && extents[0]![0] === 0 && extents[0]![1] === size;
  return dense ? undefined : extents;
}
