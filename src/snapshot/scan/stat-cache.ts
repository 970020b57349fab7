// What the last checkpoint saw, in columns: enough to tell by lstat alone that a file is unchanged, and to write the
// next table of contents without reading the old ones. A cache: lost or stale, everything is hashed again and nothing
// else happens. It lies outside the vault, since it grows with the cell and not with the change.
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { makeDirectory } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { StatMark } from "../model/capture-item.ts";
import type { Entry, EntryType } from "../model/entry.ts";
import { type NameTable, nameAt, type Spelling } from "./name-table.ts";

export interface CachedEntry {
  readonly entry: Omit<Entry, "location">;
  readonly mark: StatMark;
  /** The file could have changed after its stat without a trace: hash it next time whatever stat says. */
  readonly racy: boolean;
}

/** The cell itself in the first row; the children of a directory stand together, and it says where. */
export interface StatCache extends NameTable {
  /** Manifest digest of the checkpoint this describes. */
  readonly manifest: string;
  /** A digest of the patterns that no row matches. */
  readonly rules: string;
  readonly count: number;
  readonly types: Uint8Array;
  readonly modes: Uint32Array;
  readonly uids: Uint32Array;
  readonly gids: Uint32Array;
  readonly nlinks: Uint32Array;
  readonly mtimeNs: Uint32Array;
  readonly mtimeSecs: Float64Array;
  readonly ctimesMs: Float64Array;
  readonly inos: Float64Array;
  readonly sizes: Float64Array;
  readonly racy: Uint8Array;
  /** For a directory: 1 when not all of its names have a row, so that they must be read again. */
  readonly partial: Uint8Array;
  /** 1 where an unchanged stat does not say it all: other names of a file, sidecars of databases, FIFOs. */
  readonly special: Uint8Array;
  /** 32 bytes a row. */
  readonly digests: Buffer;
  readonly extras: Readonly<Record<number, Extra>>;
  /** The rows that have one, in order. */
  readonly extraRows: Uint32Array;
  /** For a row that is a directory: first child and number of children. */
  readonly firstChild: Uint32Array;
  readonly childCount: Uint32Array;
  /** The file it was read from, for threads that look at it together. */
  readonly shared?: SharedArrayBuffer;
}

const MAGIC = "LZSTAT06";
/** Numbers of eight bytes stand at multiples of eight, so that they are read where they are. */
const ALIGNMENT = 8;
/** By type code. */
export const TYPES: readonly EntryType[] = ["file", "directory", "symlink", "fifo"];
export const COLUMNS = [
  ["mtimeSecs", Float64Array],
  ["ctimesMs", Float64Array],
  ["inos", Float64Array],
  ["sizes", Float64Array],
  ["modes", Uint32Array],
  ["uids", Uint32Array],
  ["gids", Uint32Array],
  ["nlinks", Uint32Array],
  ["mtimeNs", Uint32Array],
  ["firstChild", Uint32Array],
  ["childCount", Uint32Array],
  ["nameEnds", Uint32Array],
  ["types", Uint8Array],
  ["racy", Uint8Array],
  ["partial", Uint8Array],
  ["special", Uint8Array],
] as const;

export type ColumnName = (typeof COLUMNS)[number][0];

export const TYPE_CODES: Readonly<Record<EntryType, number>> = { file: 0, directory: 1, symlink: 2, fifo: 3 };

/** Stat says what it said then, and that can be believed. */
export function isUnchanged(cache: StatCache, row: number, stat: Stats): boolean {
  return (
    cache.racy[row] === 0 &&
    cache.ctimesMs[row] === stat.ctimeMs &&
    cache.sizes[row] === (cache.types[row] === 0 ? stat.size : 0) &&
    cache.mtimeSecs[row]! * 1000 + cache.mtimeNs[row]! / 1_000_000 === stat.mtimeMs &&
    cache.inos[row] === stat.ino &&
    cache.modes[row] === (stat.mode & 0o7777)
  );
}

/** -1 when the cache does not know the path. */
export function findRow(cache: StatCache, path: string): number {
  let row = 0;
  for (const name of path.split("/")) {
    let child = cache.firstChild[row]!;
    const end = child + cache.childCount[row]!;
    while (child < end && nameAt(cache, child) !== name) child += 1;
    if (child === end) return -1;
    row = child;
  }
  return row;
}

export function cachedEntry(cache: StatCache, row: number, path: string): CachedEntry {
  const type = TYPES[cache.types[row]!]!;
  return {
    entry: {
      path,
      type,
      mode: cache.modes[row]!,
      uid: cache.uids[row]!,
      gid: cache.gids[row]!,
      mtimeSec: cache.mtimeSecs[row]!,
      mtimeNs: cache.mtimeNs[row]!,
      size: cache.sizes[row]!,
      sha256: type === "file" ? cache.digests.toString("hex", row * 32, row * 32 + 32) : "",
      ...cache.extras[row],
    },
    mark: { ctimeMs: cache.ctimesMs[row]!, ino: cache.inos[row]!, nlink: cache.nlinks[row]! },
    racy: cache.racy[row] === 1,
  };
}

export type Extra = Pick<Entry, "target" | "group" | "xattrs" | "extents">;

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function rowsOf(extras: Readonly<Record<number, Extra>>): Uint32Array {
  return Uint32Array.from(Object.keys(extras), Number).sort();
}

export function encodeStatCache(cache: StatCache): Buffer {
  return Buffer.concat(encodeParts(cache));
}

function encodeParts(cache: StatCache): Buffer[] {
  const extras = Buffer.from(JSON.stringify(cache.extras));
  const columns = COLUMNS.map(([name]) =>
    Buffer.from(cache[name].buffer, cache[name].byteOffset, cache[name].byteLength),
  );
  const parts = [...columns, cache.digests, cache.nameBytes, extras];
  const fields: Omit<Head, "crc"> = {
    manifest: cache.manifest,
    rules: cache.rules,
    count: cache.count,
    names: cache.nameBytes.length,
    spelling: cache.spelling,
    extras: extras.length,
  };
  const crc = parts.reduce((sum, part) => crc32(part, sum), crc32(JSON.stringify(fields)));
  const head: Head = { ...fields, crc };
  const text = MAGIC + JSON.stringify(head);
  const spaces = " ".repeat(ALIGNMENT - ((text.length + 1) % ALIGNMENT));
  return [Buffer.from(`${text}${spaces}\n`), ...parts];
}

interface Head {
  readonly manifest: string;
  readonly rules: string;
  readonly count: number;
  readonly names: number;
  readonly spelling: Spelling;
  readonly extras: number;
  /** Of the other fields and of all that follows. */
  readonly crc: number;
}

/** Undefined for anything that is not a whole cache. `checked`: another thread has found it whole. */
export function decodeStatCache(shared: SharedArrayBuffer, checked = false): StatCache | undefined {
  const bytes = Buffer.from(shared as ArrayBufferLike as ArrayBuffer);
  const end = bytes.indexOf(10);
  if (end < 0 || bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return undefined;
  const { crc, ...head }: Head = JSON.parse(bytes.toString("latin1", MAGIC.length, end));
  if (!checked && crc32(bytes.subarray(end + 1), crc32(JSON.stringify(head))) !== crc) return undefined;
  const { count } = head;
  let at = end + 1;
  const take = (length: number) => {
    const part = bytes.subarray(at, at + length);
    at += length;
    return part;
  };
  const columns: Record<string, unknown> = {};
  for (const [name, Column] of COLUMNS) {
    columns[name] = new Column(bytes.buffer, take(count * Column.BYTES_PER_ELEMENT).byteOffset, count);
  }
  const digests = take(count * 32);
  const nameBytes = take(head.names);
  const extras = JSON.parse(take(head.extras).toString("utf8"));
  if (at !== bytes.length) return undefined;
  return {
    manifest: head.manifest,
    rules: head.rules,
    count,
    nameBytes,
    spelling: head.spelling,
    digests,
    extras,
    extraRows: rowsOf(extras),
    shared,
    ...columns,
  } as unknown as StatCache;
}

export function readStatCache(file: string, manifest: string): StatCache | undefined {
  try {
    const cache = decodeStatCache(readShared(file));
    return cache?.manifest === manifest ? cache : undefined;
  } catch {
    return undefined;
  }
}

function readShared(file: string): SharedArrayBuffer {
  const fd = openSync(file, "r");
  try {
    const shared = new SharedArrayBuffer(fstatSync(fd).size);
    const bytes = new Uint8Array(shared);
    let done = 0;
    while (done < bytes.length) {
      const count = readSync(fd, bytes, done, bytes.length - done, done);
      if (count === 0) break;
      done += count;
    }
    return shared;
  } finally {
    closeSync(fd);
  }
}

/**
 * Not synced: a cache that a power cut tore fails its checksum and is as good as none. The one before is kept and
 * written over the next time: to give up 12 MB of memory and to take as much anew costs more than the writing.
 */
export function writeStatCache(machine: Machine, file: string, cache: StatCache): void {
  makeDirectory(machine.disk, dirname(file));
  const temporary = `${file}.new`;
  const before = `${file}.old`;
  renameIfThere(before, temporary);
  const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    let length = 0;
    // One after the other: to put them together first takes as long as to write them.
    for (const part of encodeParts(cache)) {
      writeFileSync(fd, part);
      length += part.length;
    }
    ftruncateSync(fd, length);
  } finally {
    closeSync(fd);
  }
  renameIfThere(file, before);
  renameSync(temporary, file);
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
}
