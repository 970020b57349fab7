// The entries of the last checkpoint in columns: enough to tell by lstat alone that a file is unchanged, and to build the
// next cache without reading tables of contents. If it is lost or stale, everything is hashed again. It is kept outside
// the vault, since it grows with the cell and not with the changes. Live protection replaces it.
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
  /** The file could have changed after its stat was taken: hash it next time whatever its stat is. */
  readonly racy: boolean;
}

/** The first row is the cell itself; the children of a directory are contiguous. */
export interface StatCache extends NameTable {
  /** Manifest digest of the checkpoint this describes. */
  readonly manifest: string;
  /** Digest of the exclude patterns, which no row matches. */
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
  /** For a directory: 1 when not all of its names have a row, so that it must be read again. */
  readonly partial: Uint8Array;
  /** 1 where an unchanged stat is not enough: files with several names, sidecars of databases, FIFOs. */
  readonly special: Uint8Array;
  /** 32 bytes per row. */
  readonly digests: Buffer;
  readonly extras: Readonly<Record<number, Extra>>;
  /** The rows that have extras, in order. */
  readonly extraRows: Uint32Array;
  /** For a directory: first child and number of children. */
  readonly firstChild: Uint32Array;
  readonly childCount: Uint32Array;
  /** The bytes of the file it was read from, for threads to share. */
  readonly shared?: SharedArrayBuffer;
}

const MAGIC = "LZSTAT06";
/** Columns start at multiples of eight, so that typed arrays can be mapped onto the file. */
const ALIGNMENT = 8;
/** Entry types by their code. */
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

/** The stat is the same, and the row is not racy. */
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

/** -1 for a path that is not in the cache. */
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
  /** Covers the other fields and everything after the header. */
  readonly crc: number;
}

/** Undefined for an incomplete or damaged cache. `checked`: another thread has verified it. */
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
 * Not synced: after a power cut a torn cache fails its checksum and is ignored. The previous file is kept and overwritten
 * next time, because freeing and reallocating 12 MB of page cache takes longer than writing it.
 */
export function writeStatCache(machine: Machine, file: string, cache: StatCache): void {
  makeDirectory(machine.disk, dirname(file));
  const temporary = `${file}.new`;
  const previous = `${file}.old`;
  renameIfPresent(previous, temporary);
  const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  try {
    let length = 0;
    // One by one: concatenating them takes as long as writing.
    for (const part of encodeParts(cache)) {
      writeFileSync(fd, part);
      length += part.length;
    }
    ftruncateSync(fd, length);
  } finally {
    closeSync(fd);
  }
  renameIfPresent(file, previous);
  renameSync(temporary, file);
}

function renameIfPresent(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
  }
}
