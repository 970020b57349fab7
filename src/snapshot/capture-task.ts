// Does one capture task: reads files through their descriptor, stats before and after, retries what moved, and builds
// tar bytes in one buffer. Synchronous, without state between tasks: workers run it, and so does the main thread when
// there is little to do. Never follows a link, never waits on a FIFO.
import { hash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { systemClock } from "../platform/clock.ts";
import { systemErrorCode } from "../platform/errors.ts";
import { posixSupport } from "../platform/posix.ts";
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  HashTask,
  MissedItem,
  PackTask,
  PieceTask,
  StatMark,
  TaskMemory,
  TaskResult,
} from "./capture-item.ts";
import type { Entry, EntryType } from "./entry.ts";
import { gzipCodec, zstdCodec } from "./oci/codec.ts";
import { decodePath, systemPath } from "./path-bytes.ts";
import { encodeHeader, encodeSparseMap, padding } from "./tar/header.ts";
import { refuseExhaustion } from "./walk.ts";

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const ATTEMPTS = 3;
const SQLITE_MAGIC = Buffer.from("SQLite format 3\0");
const NS = 1_000_000_000n;

export function runTask(task: CaptureTask): TaskResult {
  const codec = task.codec === "zstd" ? zstdCodec : gzipCodec;
  const { memory } = task;
  const squeeze = (raw: Uint8Array) =>
    codec.pack(raw, memory === undefined ? undefined : new Uint8Array(memory.stored));
  if (task.kind === "hash") return hashTask(task);
  if (task.kind === "piece") {
    const { raw, ...rest } = readPiece(task, memory);
    return { captured: [], missed: [], ...rest, member: { raw, stored: squeeze(raw) } };
  }
  const { raw, captured, missed } = packFiles(task, memory);
  if (raw.length === 0) return { captured, missed };
  return { captured, missed, member: { raw, stored: squeeze(raw) } };
}

type Spans = readonly (readonly [offset: number, length: number])[];

/** A tar stream under construction: one buffer that grows when files grew since they were listed. */
class TarBuffer {
  bytes: Buffer;
  length = 0;

  constructor(capacity: number, memory?: TaskMemory) {
    this.bytes =
      memory === undefined || memory.raw.byteLength < capacity
        ? Buffer.allocUnsafeSlow(capacity)
        : (Buffer.from(memory.raw as ArrayBufferLike as ArrayBuffer) as Buffer);
  }

  reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + count));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  append(chunk: Uint8Array): void {
    this.reserve(chunk.length);
    this.bytes.set(chunk, this.length);
    this.length += chunk.length;
  }

  pad(count: number): void {
    this.reserve(count);
    this.bytes.fill(0, this.length, this.length + count);
    this.length += count;
  }
}

function packFiles(
  task: PackTask,
  memory: TaskMemory | undefined,
): { raw: Uint8Array; captured: CapturedItem[]; missed: MissedItem[] } {
  const tar = new TarBuffer(task.sizeHint + task.items.length * 2048, memory);
  const captured: CapturedItem[] = [];
  const missed: MissedItem[] = [];
  const leaders = new Map<string, CapturedItem>();
  for (const item of task.items) {
    const start = tar.length;
    try {
      const found = packItem(task.root, item, tar, leaders);
      captured.push(found);
      if (item.group !== undefined && !leaders.has(item.group)) leaders.set(item.group, found);
    } catch (error) {
      tar.length = start;
      missed.push(explainMiss(item, error));
    }
  }
  return { raw: tar.bytes.subarray(0, tar.length), captured, missed };
}

class Missed extends Error {
  readonly why: MissedItem["why"];
  constructor(why: MissedItem["why"], reason: string) {
    super(reason);
    this.why = why;
  }
}

export function explainMiss(item: CaptureItem, error: unknown): MissedItem {
  if (error instanceof Missed) return { path: item.path, why: error.why, reason: error.message };
  const code = systemErrorCode(error);
  if (code === "ENOENT") return { path: item.path, why: "vanished", reason: "gone before it was read" };
  if (code === "ELOOP" || code === "ENOTDIR" || code === "ENXIO") {
    return { path: item.path, why: "changed-type", reason: "became something else while being captured" };
  }
  refuseExhaustion(error, `reading ${item.path}`, ".");
  if (code === undefined) throw error;
  return { path: item.path, why: "unreadable", reason: `cannot be read (${code})` };
}

function packItem(
  root: string,
  item: CaptureItem,
  tar: TarBuffer,
  leaders: Map<string, CapturedItem>,
): CapturedItem {
  const file = systemPath(`${root}/${item.path}`);
  // When the first name of the group could not be read, the next one takes its place.
  const leader = item.linkTo === undefined ? undefined : leaders.get(item.group!);
  if (leader !== undefined) {
    const entry = { ...leader.entry, path: item.path };
    tar.append(encodeHeader(entry, { linkTo: leader.entry.path, storedSize: 0 }));
    return { ...leader, entry };
  }
  if (item.type === "file") return packFile(item, file, tar);
  const found = describeOther(item, file);
  tar.append(encodeHeader(found.entry, { storedSize: 0 }));
  return found;
}

/** Directories, symlinks and FIFOs: everything there is to know, without opening them. */
function describeOther(item: CaptureItem, file: string | Buffer): CapturedItem {
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

export function changedType(): Error {
  return new Missed("changed-type", "became something else while being captured");
}

function packFile(item: CaptureItem, live: string | Buffer, tar: TarBuffer): CapturedItem {
  const start = tar.length;
  for (let attempt = 1; ; attempt += 1) {
    tar.length = start;
    const found = packFileOnce(item, live, tar);
    if (found.torn === undefined || attempt === ATTEMPTS) return found;
  }
}

function packFileOnce(item: CaptureItem, live: string | Buffer, tar: TarBuffer): CapturedItem {
  const fd = openSync(item.source === undefined ? live : systemPath(item.source), READ_FLAGS);
  try {
    const before = fstatSync(fd, { bigint: true });
    if (!before.isFile()) throw changedType();
    // A backup of a database has the database's own metadata, not the scratch file's.
    const described = describe(
      item,
      live,
      item.source === undefined ? before : lstatSync(live, { bigint: true }),
    );
    const size = Number(before.size);
    const extents = findExtents(fd, before, size);
    const storedSize = extents === undefined ? size : extents.reduce((sum, [, length]) => sum + length, 0);
    const map = extents === undefined ? undefined : encodeSparseMap(extents, size);
    const shape = { ...described.entry, size, sha256: "", ...(extents === undefined ? {} : { extents }) };
    tar.append(encodeHeader(shape, { storedSize: storedSize + (map?.length ?? 0) }));
    if (map !== undefined) tar.append(map);
    const at = tar.length;
    tar.reserve(storedSize + padding(storedSize));
    for (const [offset, length] of extents ?? [[0, size] as const]) readInto(fd, tar, offset, length);
    const content = tar.bytes.subarray(at, tar.length);
    if (item.source === undefined) refuseLiveDatabase(live, content);
    const spans = extents ?? [[0, size] as const];
    const torn =
      movedMeanwhile(before, fstatSync(fd, { bigint: true })) ??
      (isHot(before) && !readsTheSame(fd, spans, content) ? "it was written while being read" : undefined);
    const sha256 = hash("sha256", content, "hex");
    tar.pad(padding(storedSize));
    const captured: CapturedItem = {
      ...described,
      entry: { ...shape, sha256 },
      ...(torn === undefined ? {} : { torn }),
    };
    return storedSize === 0 ? captured : { ...captured, at, stored: storedSize };
  } finally {
    closeSync(fd);
  }
}

/** Reads exactly `length` bytes; what a shrinking file no longer has becomes zeros, and the stat tells that it moved. */
function readInto(fd: number, tar: TarBuffer, offset: number, length: number): void {
  const end = tar.length + length;
  let position = offset;
  while (tar.length < end) {
    const count = readSync(fd, tar.bytes, tar.length, end - tar.length, position);
    if (count === 0) tar.pad(end - tar.length);
    tar.length += count;
    position += count;
  }
}

/**
 * A file system keeps time in ticks of up to 10 ms: two writes within one leave the same stat. What no stat shows is a
 * single write that the kernel holds up in its middle for longer; the next checkpoint looks at such a file again.
 */
const TICK_MS = 12;

/** Changed so recently that another change could have left no trace in its stat. */
export function isHot(stat: BigIntStats): boolean {
  const ageMs = systemClock.nowMs() - nsToMs(stat.ctimeNs);
  return ageMs > -TICK_MS && ageMs < TICK_MS;
}

/** Reads everything once more. The same bytes twice are what the file held at the moment in between. */
function readsTheSame(fd: number, spans: Spans, content: Uint8Array): boolean {
  const again = new TarBuffer(content.length);
  for (const [offset, length] of spans) readInto(fd, again, offset, length);
  return Buffer.compare(again.bytes.subarray(0, again.length), content) === 0;
}

/** Reading a database while a transaction is under way captures half of it: SQLite must do it. */
export function refuseLiveDatabase(file: string | Buffer, content: Uint8Array): void {
  if (content.length < 100 || !SQLITE_MAGIC.equals(content.subarray(0, 16))) return;
  for (const suffix of ["-journal", "-wal"]) {
    const sidecar = typeof file === "string" ? file + suffix : Buffer.concat([file, Buffer.from(suffix)]);
    if (existsSync(sidecar)) throw new Missed("database", "a database in use");
  }
}

export function movedMeanwhile(before: BigIntStats, after: BigIntStats): string | undefined {
  if (before.size !== after.size)
    return `its size went from ${before.size} to ${after.size} while being read`;
  if (before.mtimeNs !== after.mtimeNs || before.ctimeNs !== after.ctimeNs)
    return "it was written while being read";
  return undefined;
}

type Described = Pick<CapturedItem, "mark" | "degraded"> & {
  entry: Omit<Entry, "location" | "size" | "sha256">;
};

export function describe(item: CaptureItem, file: string | Buffer, stat: BigIntStats): Described {
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
function nsToMs(ns: bigint): number {
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

/** What cannot be read becomes zeros, and the result says so: the header before it is written already. */
function readPiece(
  task: PieceTask,
  memory: TaskMemory | undefined,
): { raw: Uint8Array; signature: string; short: boolean } {
  const tar = new TarBuffer(task.prefix.length + task.length + task.suffixLength, memory);
  tar.append(task.prefix);
  const start = tar.length;
  let signature = "";
  let short = true;
  try {
    const fd = openSync(systemPath(task.file), READ_FLAGS);
    try {
      const before = fstatSync(fd, { bigint: true });
      readInto(fd, tar, task.offset, task.length);
      const after = fstatSync(fd, { bigint: true });
      signature = signatureOf(after, before.ino);
      short = Number(after.size) < task.offset + task.length;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    refuseExhaustion(error, `reading ${task.file}`, ".");
    if (systemErrorCode(error) === undefined) throw error;
    tar.length = start;
    tar.pad(task.length);
  }
  tar.pad(task.suffixLength);
  return { raw: tar.bytes.subarray(0, tar.length), signature, short };
}

export function signatureOf(stat: BigIntStats, ino: bigint = stat.ino): string {
  return `${ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`;
}

function hashTask(task: HashTask): TaskResult {
  const captured: CapturedItem[] = [];
  const missed: MissedItem[] = [];
  for (const item of task.items) {
    try {
      captured.push(hashItem(task.root, item));
    } catch (error) {
      missed.push(explainMiss(item, error));
    }
  }
  return { captured, missed };
}

const HASH_CHUNK = 1 << 20;
let hashBuffer: Buffer | undefined;

function hashItem(root: string, item: CaptureItem): CapturedItem {
  const { createHash } = process.getBuiltinModule("node:crypto");
  const live = systemPath(`${root}/${item.path}`);
  if (item.type !== "file") return describeOther(item, live);
  const fd = openSync(item.source === undefined ? live : systemPath(item.source), READ_FLAGS);
  try {
    const before = fstatSync(fd, { bigint: true });
    if (!before.isFile()) throw changedType();
    const described = describe(
      item,
      live,
      item.source === undefined ? before : lstatSync(live, { bigint: true }),
    );
    const size = Number(before.size);
    const extents = findExtents(fd, before, size);
    const digest = createHash("sha256");
    hashBuffer ??= Buffer.allocUnsafeSlow(HASH_CHUNK);
    for (const [offset, length] of extents ?? [[0, size] as const]) {
      let done = 0;
      while (done < length) {
        const count = readSync(fd, hashBuffer, 0, Math.min(HASH_CHUNK, length - done), offset + done);
        if (count === 0) break;
        if (offset + done === 0 && item.source === undefined)
          refuseLiveDatabase(live, hashBuffer.subarray(0, count));
        digest.update(hashBuffer.subarray(0, count));
        done += count;
      }
    }
    const torn = movedMeanwhile(before, fstatSync(fd, { bigint: true }));
    const entry = {
      ...described.entry,
      size,
      sha256: digest.digest("hex"),
      ...(extents === undefined ? {} : { extents }),
    };
    return { ...described, entry, ...(torn === undefined ? {} : { torn }) };
  } finally {
    closeSync(fd);
  }
}
