// Does one capture task: reads files through their descriptor, stats before and after, retries what moved, and builds
// tar bytes in one buffer. Synchronous, without state between tasks: workers run it, and so does the main thread when
// there is little to do. Never follows a link, never waits on a FIFO.
import { hash } from "node:crypto";
import { closeSync, fstatSync } from "node:fs";
import { systemErrorCode } from "../platform/errors.ts";
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  MissedItem,
  PackTask,
  PieceTask,
  TaskMemory,
  TaskResult,
} from "./capture-item.ts";
import { describeFile, describeOther, findExtents, openItem, openToRead } from "./describe-path.ts";
import { hashTask } from "./hash-task.ts";
import { changedType, explainMiss, isDatabaseContent, movedDatabase, refuseLiveDatabase } from "./missed.ts";
import { isHot, movedMeanwhile, signatureOf } from "./moving-file.ts";
import { gzipCodec, zstdCodec } from "./oci/codec.ts";
import { systemPath } from "./path-bytes.ts";
import { encodeHeader, encodeSparseMap, padding } from "./tar/header.ts";
import { readInto, TarBuffer } from "./tar-buffer.ts";
import { refuseExhaustion } from "./walk.ts";

const ATTEMPTS = 3;

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

function packFile(item: CaptureItem, live: string | Buffer, tar: TarBuffer): CapturedItem {
  const start = tar.length;
  for (let attempt = 1; ; attempt += 1) {
    tar.length = start;
    const found = packFileOnce(item, live, tar);
    if (found.torn === undefined || attempt === ATTEMPTS) return found;
  }
}

function packFileOnce(item: CaptureItem, live: string | Buffer, tar: TarBuffer): CapturedItem {
  const fd = openItem(item, live);
  try {
    const before = fstatSync(fd, { bigint: true });
    if (!before.isFile()) throw changedType();
    const described = describeFile(item, live, before);
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
    if (torn !== undefined && item.source === undefined && isDatabaseContent(content)) throw movedDatabase();
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

/** Reads everything once more. The same bytes twice are what the file held at the moment in between. */
function readsTheSame(fd: number, spans: Spans, content: Uint8Array): boolean {
  const again = new TarBuffer(content.length);
  for (const [offset, length] of spans) readInto(fd, again, offset, length);
  return Buffer.compare(again.bytes.subarray(0, again.length), content) === 0;
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
    const fd = openToRead(systemPath(task.file));
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
