// Packs large files in pieces, so that all cores work on one of them. A file that changes between two pieces is packed
// again; the last attempt in the stream counts, and a file that never stays quiet is marked torn (INV-6).
import { createHash, type Hash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  MissedItem,
  TaskResult,
} from "../model/capture-item.ts";
import { OpenTree } from "../model/open-tree.ts";
import { encodeHeader, encodeSparseMap, padding } from "../tar/header.ts";
import { describeFile, livePath, openItem } from "./describe-path.ts";
import { bytesOf } from "./pool.ts";
import { changedDatabase, explainMiss, isDatabaseContent, refuseLiveDatabase } from "./read-failure.ts";
import type { PackPlan, PackTarget } from "./small-files.ts";
import { isHot, signatureOf, statWhenQuiet } from "./torn.ts";

const LARGE_BYTES = 2 << 20;
const PIECE_BYTES = 1 << 20;
/** How often a file that changes while it is read is packed. */
export const ATTEMPTS = 3;
/** Signature of a file that is written constantly: it never matches. */
const NEVER_QUIET = "never quiet";

export const isLarge = (item: CaptureItem) => bytesOf(item) > LARGE_BYTES;

interface LargeFile {
  readonly leader: CaptureItem;
  readonly links: readonly CaptureItem[];
  readonly described: CapturedItem;
  readonly header: Buffer;
  readonly pieces: readonly (readonly [offset: number, length: number])[];
  readonly storedSize: number;
  readonly signature: string;
}

export interface LargePlan extends PackPlan {
  /** Files that changed while they were read, complete when every result was taken. */
  readonly changed: readonly (readonly CaptureItem[])[];
}

/** Each unit is a file followed by its hard links, which are packed as headers. */
export function planLargeFiles(target: PackTarget, units: readonly (readonly CaptureItem[])[]): LargePlan {
  const captured = new Map<string, CapturedItem>();
  const missed: MissedItem[] = [];
  const changed: (readonly CaptureItem[])[] = [];
  const files: LargeFile[] = [];
  using tree = new OpenTree(target.root);
  for (const unit of units) {
    const opened = openUnit(tree, unit);
    missed.push(...opened.missed);
    if (opened.file !== undefined) files.push(opened.file);
  }
  const owners = files.flatMap((file) => file.pieces.map((_, piece) => ({ file, piece })));
  let reading: Reading | undefined;
  return {
    tasks: files.flatMap((file) => pieceTasks(target, file)),
    take(result, index) {
      const { file, piece } = owners[index]!;
      if (piece === 0) reading = startReading(target, file);
      takePiece(target, file, piece, result, reading!);
      if (piece < file.pieces.length - 1) return;
      for (const item of enterFile(target, file, reading!)) captured.set(item.entry.path, item);
      if (!reading!.moved) return;
      // SQLite's copy is packed later in the stream and replaces it.
      if (reading!.isDatabase) missed.push(explainMiss(file.leader, changedDatabase()));
      else changed.push([file.leader, ...file.links]);
    },
    packed: { captured, missed },
    changed,
  };
}

function pieceTasks({ root, codec }: PackTarget, file: LargeFile): CaptureTask[] {
  return file.pieces.map(([offset, length], piece) => ({
    kind: "piece",
    codec,
    root,
    item: file.leader,
    offset,
    length,
    prefix: piece === 0 ? file.header : new Uint8Array(),
    suffixLength: piece === file.pieces.length - 1 ? padding(file.storedSize) : 0,
  }));
}

/** What is known of a large file while its pieces arrive. */
interface Reading {
  readonly hash: Hash;
  /** Offset of its content in the raw stream. */
  readonly at: number;
  moved: boolean;
  isDatabase: boolean;
}

function startReading({ writer }: PackTarget, file: LargeFile): Reading {
  const at = writer.rawLength + file.header.length;
  return { hash: createHash("sha256"), at, moved: false, isDatabase: false };
}

function takePiece(
  { writer, onBytes }: PackTarget,
  file: LargeFile,
  piece: number,
  result: TaskResult,
  reading: Reading,
): void {
  const { raw, stored } = result.member!;
  const start = piece === 0 ? file.header.length : 0;
  const content = raw.subarray(start, start + file.pieces[piece]![1]);
  // Links were entered as links to the bytes that were read, so only a database without links is copied afterwards.
  if (piece === 0)
    reading.isDatabase =
      file.leader.source === undefined && file.links.length === 0 && isDatabaseContent(content);
  reading.hash.update(content);
  reading.moved ||= result.signature !== file.signature || result.short === true;
  writer.append(stored, raw, piece === 0 ? 1 : 0);
  onBytes(raw.length);
}

/** Enters a completely read file and its links into the table of contents. */
function enterFile({ writer }: PackTarget, file: LargeFile, reading: Reading): CapturedItem[] {
  const torn = reading.moved ? { torn: "it was written while being read" } : {};
  const entry = { ...file.described.entry, sha256: reading.hash.digest("hex") };
  const item: CapturedItem = { ...file.described, entry, ...torn };
  const location = { at: reading.at, length: file.storedSize };
  const links = file.links.map(({ path }): CapturedItem => ({ ...item, entry: { ...entry, path } }));
  const headers = links.map((link) => encodeHeader(link.entry, { linkTo: entry.path, storedSize: 0 }));
  writer.appendRaw(Buffer.concat(headers), headers.length);
  const items = [item, ...links];
  writer.enter(items.map((each) => ({ ...each.entry, ...location })));
  return items;
}

/** Opens a file by its first name that can be opened. */
function openUnit(
  tree: OpenTree,
  unit: readonly CaptureItem[],
): { file: LargeFile | undefined; missed: MissedItem[] } {
  const missed: MissedItem[] = [];
  for (const [i, leader] of unit.entries()) {
    try {
      return { file: openLarge(tree, leader, unit.slice(i + 1)), missed };
    } catch (error) {
      missed.push(explainMiss(leader, error));
    }
  }
  return { file: undefined, missed };
}

function openLarge(tree: OpenTree, leader: CaptureItem, links: readonly CaptureItem[]): LargeFile {
  const live = () => livePath(tree, leader);
  const fd = openItem(tree, leader);
  try {
    const stat = statWhenQuiet(fd);
    const described = describeFile(leader, live, stat, fd);
    if (leader.source === undefined) {
      const head = Buffer.alloc(100);
      refuseLiveDatabase(live, head.subarray(0, readSync(fd, head, 0, head.length, 0)), stat.ino);
    }
    const { size, extents } = described.entry;
    const spans = extents ?? [[0, size] as const];
    const storedSize = spans.reduce((sum, [, length]) => sum + length, 0);
    const map = extents === undefined ? Buffer.alloc(0) : encodeSparseMap(extents, size);
    const header = encodeHeader(described.entry, { storedSize: storedSize + map.length });
    return {
      leader,
      links,
      described,
      header: Buffer.concat([header, map]),
      pieces: cutPieces(spans),
      storedSize,
      signature: isHot(stat) ? NEVER_QUIET : signatureOf(stat),
    };
  } finally {
    closeSync(fd);
  }
}

/** At least one piece, which carries the header. */
function cutPieces(spans: readonly (readonly [number, number])[]): [number, number][] {
  const pieces: [number, number][] = [];
  for (const [start, length] of spans) {
    for (let done = 0; done < length; done += PIECE_BYTES)
      pieces.push([start + done, Math.min(PIECE_BYTES, length - done)]);
  }
  return pieces.length === 0 ? [[0, 0]] : pieces;
}
