// Performs one capture task: reads each file through one descriptor, compares its stat before and after, retries files
// that changed in between, and builds tar bytes in one buffer. Synchronous and stateless: workers run it, and so does the
// main thread for small captures. Never follows a link, never blocks on a FIFO.
import { hash } from "node:crypto";
import { closeSync } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { createStat, statOpen } from "../../platform/file-stat.ts";
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  MissedItem,
  PackTask,
  PieceTask,
  TaskResult,
} from "../model/capture-item.ts";
import { OpenTree } from "../model/open-tree.ts";
import { encodeSparseMap, padding, writeHeader } from "../tar/header.ts";
import { codecFor } from "../vault/codec.ts";
import { describeFile, describeOther, livePath, openItem } from "./describe-path.ts";
import { hashTask } from "./hash.ts";
import { changedDatabase, explainMiss, isDatabaseContent, refuseLiveDatabase } from "./read-failure.ts";
import { packTail } from "./tail.ts";
import { readInto, TarBuffer } from "./tar-buffer.ts";
import { changedWhileReading, isHot, signatureOf } from "./torn.ts";

const ATTEMPTS = 3;
/** An estimate of what an entry takes in a tar besides its content. */
const HEADER_BYTES = 2048;

/** The member is in `memory`, as far as it fits. */
export function runTask(task: CaptureTask, memory?: SharedArrayBuffer): TaskResult {
  if (task.kind === "hash") return hashTask(task);
  const compress = (raw: Buffer) => {
    const rest = raw.buffer === memory ? Buffer.from(memory, raw.length) : undefined;
    return { raw, stored: codecFor(task.codec).compressFast(raw, rest) };
  };
  if (task.kind === "piece") {
    const { raw, ...piece } = readPiece(task, memory);
    return { captured: [], missed: [], ...piece, member: compress(raw) };
  }
  const { raw, captured, missed } = task.kind === "tail" ? packTail(task) : packFiles(task, memory);
  if (raw.length === 0) return { captured, missed };
  return { captured, missed, member: compress(raw) };
}

type Spans = readonly (readonly [offset: number, length: number])[];

function packFiles(
  task: PackTask,
  memory: SharedArrayBuffer | undefined,
): { raw: Buffer; captured: CapturedItem[]; missed: MissedItem[] } {
  const tar = new TarBuffer(task.sizeHint + task.items.length * HEADER_BYTES, memory);
  const captured: CapturedItem[] = [];
  const missed: MissedItem[] = [];
  const leaders = new Map<string, CapturedItem>();
  using tree = new OpenTree(task.root);
  for (const item of task.items) {
    const start = tar.length;
    try {
      const found = packItem(tree, item, tar, leaders);
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
  tree: OpenTree,
  item: CaptureItem,
  tar: TarBuffer,
  leaders: Map<string, CapturedItem>,
): CapturedItem {
  // Absent when the group's first name could not be read: then the next name takes its place.
  const leader = item.linkTo === undefined ? undefined : leaders.get(item.group!);
  if (leader !== undefined) {
    const entry = { ...leader.entry, path: item.path };
    writeHeader(tar, entry, { linkTo: leader.entry.path, storedSize: 0 });
    return { ...leader, entry };
  }
  if (item.type === "file") return packFile(tree, item, tar);
  const found = describeOther(item, livePath(tree, item));
  writeHeader(tar, found.entry, { storedSize: 0 });
  return found;
}

function packFile(tree: OpenTree, item: CaptureItem, tar: TarBuffer): CapturedItem {
  const start = tar.length;
  for (let attempt = 1; ; attempt += 1) {
    tar.length = start;
    const found = packFileOnce(tree, item, tar);
    if (found.torn === undefined || attempt === ATTEMPTS) return found;
  }
}

/** Reused: a thread reads one file at a time. */
const before = createStat();
const after = createStat();

function packFileOnce(tree: OpenTree, item: CaptureItem, tar: TarBuffer): CapturedItem {
  const live = () => livePath(tree, item);
  const fd = openItem(tree, item);
  try {
    const found = describeFile(item, live, statOpen(fd, before), fd);
    const { size, extents } = found.entry;
    const map = extents === undefined ? undefined : encodeSparseMap(extents, size);
    const stored = extents === undefined ? size : extents.reduce((sum, [, length]) => sum + length, 0);
    writeHeader(tar, found.entry, { storedSize: stored + (map?.length ?? 0) });
    if (map !== undefined) tar.append(map);
    const at = tar.length;
    tar.reserve(stored + padding(stored));
    readSpans(fd, tar, size, extents);
    const content = tar.bytes.subarray(at, tar.length);
    if (item.source === undefined) refuseLiveDatabase(live, content, before.ino);
    const torn =
      changedWhileReading(before, statOpen(fd, after)) ??
      (isHot(before) && !readsTheSame(fd, size, extents, content)
        ? "it was written while being read"
        : undefined);
    if (torn !== undefined && item.source === undefined && isDatabaseContent(content))
      throw changedDatabase();
    found.entry.sha256 = hash("sha256", content, "hex");
    tar.pad(padding(stored));
    if (torn !== undefined) found.torn = torn;
    if (stored > 0) {
      found.at = at;
      found.stored = stored;
    }
    return found;
  } finally {
    closeSync(fd);
  }
}

function readSpans(fd: number, tar: TarBuffer, size: number, extents: Spans | undefined): void {
  if (extents === undefined) readInto(fd, tar, 0, size);
  else for (const [offset, length] of extents) readInto(fd, tar, offset, length);
}

/** Reads everything again. If both readings agree, the file held these bytes at the moment in between. */
function readsTheSame(fd: number, size: number, extents: Spans | undefined, content: Uint8Array): boolean {
  const again = new TarBuffer(content.length);
  readSpans(fd, again, size, extents);
  return Buffer.compare(again.bytes.subarray(0, again.length), content) === 0;
}

/** Bytes that cannot be read become zeros, and the result says so: the header is already written. */
function readPiece(
  task: PieceTask,
  memory: SharedArrayBuffer | undefined,
): { raw: Buffer; signature: string; short: boolean } {
  const tar = new TarBuffer(task.prefix.length + task.length + task.suffixLength, memory);
  tar.append(task.prefix);
  const start = tar.length;
  let signature = "";
  let short = true;
  try {
    using tree = new OpenTree(task.root);
    const fd = openItem(tree, task.item);
    try {
      readInto(fd, tar, task.offset, task.length);
      signature = signatureOf(statOpen(fd, after));
      short = after.size < task.offset + task.length;
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    refuseExhaustion(error, `reading ${task.item.path}`, ".");
    if (systemErrorCode(error) === undefined) throw error;
    tar.length = start;
    tar.pad(task.length);
  }
  tar.pad(task.suffixLength);
  return { raw: tar.bytes.subarray(0, tar.length), signature, short };
}
