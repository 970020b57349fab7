// What is known of a path without its content: type, mode, owner, time to the nanosecond, xattrs, the target of a link, and
// where the data of a sparse file lies. Never follows a link, never waits on a FIFO.
import { type BigIntStats, constants, lstatSync, openSync, readlinkSync } from "node:fs";
import { systemErrorCode } from "../platform/errors.ts";
import { posixSupport } from "../platform/posix.ts";
import type { CapturedItem, CaptureItem, StatMark } from "./capture-item.ts";
import type { Entry, EntryType } from "./entry.ts";
import { changedType } from "./missed.ts";
import { decodePath, systemPath } from "./path-bytes.ts";

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const NS = 1_000_000_000n;

export function openToRead(file: string | Buffer): number {
  return openSync(file, READ_FLAGS);
}

/** The file itself, or what stands for it (a database's backup). */
export function openItem(item: CaptureItem, live: string | Buffer): number {
  return openToRead(item.source === undefined ? live : systemPath(item.source));
}

/** Directories, symlinks and FIFOs: everything there is to know, without opening them. */
export function describeOther(item: CaptureItem, file: string | Buffer): CapturedItem {
  const stat = lstatSync(file, { bigint: true });
  if (!isOfType(stat, item.type)) throw changedType();
  const described = describe(item, file, stat);
  const target = item.type === "symlink" ? decodePath(readlinkSync(file, { encoding: "buffer" })) : undefined;
  return {
    ...described,
    entry: { ...described.entry, size: 0, sha256: "", ...(target === undefined ? {} : { target }) },
  };
}

function isOfType(stat: BigIntStats, type: EntryType): boolean {
  if (type === "file") return stat.isFile();
  if (type === "directory") return stat.isDirectory();
  return type === "symlink" ? stat.isSymbolicLink() : stat.isFIFO();
}

/** A backup of a database has the database's own metadata, not the scratch file's. */
export function describeFile(item: CaptureItem, live: string | Buffer, stat: BigIntStats): Described {
  return describe(item, live, item.source === undefined ? stat : lstatSync(live, { bigint: true }));
}

type Described = Pick<CapturedItem, "mark" | "degraded"> & {
  entry: Omit<Entry, "location" | "size" | "sha256">;
};

function describe(item: CaptureItem, file: string | Buffer, stat: BigIntStats): Described {
  const attributes = readXattrs(file);
  const seconds = floorSeconds(stat.mtimeNs);
  return {
    entry: {
      path: item.path,
      type: item.type,
      mode: Number(stat.mode) & 0o7777,
      uid: Number(stat.uid),
      gid: Number(stat.gid),
      mtimeSec: Number(seconds),
      mtimeNs: Number(stat.mtimeNs - seconds * NS),
      ...(item.group === undefined ? {} : { group: item.group }),
      ...(attributes.xattrs.length === 0 ? {} : { xattrs: attributes.xattrs }),
    },
    mark: markOf(stat),
    ...(attributes.lost === undefined ? {} : { degraded: attributes.lost }),
  };
}

function markOf(stat: BigIntStats): StatMark {
  return { ctimeMs: nsToMs(stat.ctimeNs), ino: Number(stat.ino), nlink: Number(stat.nlink) };
}

/** The same number that a plain stat gives as `ctimeMs`, so that the two can be compared. */
export function nsToMs(ns: bigint): number {
  const seconds = floorSeconds(ns);
  return Number(seconds) * 1000 + Number(ns - seconds * NS) / 1_000_000;
}

function floorSeconds(ns: bigint): bigint {
  const seconds = ns / NS;
  return ns < 0n && seconds * NS !== ns ? seconds - 1n : seconds;
}

function readXattrs(file: string | Buffer): { xattrs: [string, string][]; lost?: string } {
  const support = posixSupport();
  if (!support.ok) return { xattrs: [], lost: `extended attributes cannot be read: ${support.reason}` };
  try {
    return {
      xattrs: support.posix.listXattrs(file).map(({ name, value }) => [name, value.toString("base64")]),
    };
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT") throw error;
    return { xattrs: [], lost: `extended attributes cannot be read: ${code}` };
  }
}

/** Where data lies, when the file has holes; undefined for a dense file. */
export function findExtents(fd: number, stat: BigIntStats, size: number): [number, number][] | undefined {
  if (size === 0 || Number(stat.blocks) * 512 >= size) return undefined;
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
