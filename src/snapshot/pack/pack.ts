// Packs items into a layer: small files together, large ones in pieces, all compressed in parallel and written in
// order. What could not be read comes back as missed or flawed, never in silence (INV-6).
import { createHash, type Hash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import { createStat, type FileStat, statOpen } from "../../platform/file-stat.ts";
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  MissedItem,
  TaskResult,
} from "../model/capture-item.ts";
import { systemPath } from "../model/path-bytes.ts";
import { encodeHeader, encodeSparseMap, encodeWhiteout, padding } from "../tar/header.ts";
import type { LayerWriter } from "../vault/layer-writer.ts";
import type { TocEntry } from "../vault/toc-row.ts";
import { describeFile, openItem } from "./describe-path.ts";
import type { Pool } from "./pool.ts";
import { explainMiss, isDatabaseContent, movedDatabase, refuseLiveDatabase } from "./read-failure.ts";
import { isHot, signatureOf } from "./torn.ts";

/** What was packed, by path, and what could not be. */
export interface Packed {
  readonly captured: Map<string, CapturedItem>;
  readonly missed: MissedItem[];
}

export interface PackRequest {
  readonly root: string;
  /** Takes what is packed, from this request and others. */
  readonly captured: Map<string, CapturedItem>;
  readonly writer: LayerWriter;
  readonly codec: "gzip" | "zstd";
  readonly compress: (raw: Uint8Array) => Buffer;
  readonly onBytes: (count: number) => void;
}

/** A member holds about this much: enough to compress well, little enough to inflate for one file. */
const MEMBER_BYTES = 1 << 20;
const MEMBER_FILES = 512;
/** Larger files are cut into pieces, so that all cores work on one of them. */
const LARGE_BYTES = 2 << 20;
const PIECE_BYTES = 1 << 20;
const LARGE_ATTEMPTS = 3;
const REST_ATTEMPTS = 3;
const REST_MS = 13;
/** The signature of a file that is being written all the time: no reading of it matches. */
const NEVER = "never at rest";

export function packWhiteouts(
  request: Pick<PackRequest, "writer" | "compress">,
  paths: readonly string[],
): void {
  if (paths.length === 0) return;
  const raw = Buffer.concat(paths.map(encodeWhiteout));
  request.writer.append(request.compress(raw), raw, 0);
}

/** Packs what can be read, and returns what could not. */
export async function packItems(
  request: PackRequest,
  items: readonly CaptureItem[],
  pool: Pool,
): Promise<MissedItem[]> {
  const missed: MissedItem[] = [];
  const { small, large } = divide(items);
  const totalBytes = items.reduce((sum, item) => sum + bytesOf(item), 0);
  const tasks = small.map((group) => packTask(request, group));
  // The first attempt at large files goes along with the small ones, so that no core waits for the last of them.
  const first = planLarge(request, missed, large, false);
  await pool.run([...tasks, ...first.tasks], { totalBytes }, (result, index) => {
    if (index < tasks.length) takePacked(request, missed, result);
    else first.take(result, index - tasks.length);
  });
  let pending = first.again;
  for (let attempt = 2; pending.length > 0; attempt += 1) {
    const next = planLarge(request, missed, pending, attempt === LARGE_ATTEMPTS);
    await pool.run(next.tasks, { totalBytes: next.totalBytes }, next.take);
    pending = next.again;
  }
  return missed;
}

/** Hard links of a large file follow it; they are packed as headers of their own. */
interface LargeUnit {
  readonly leader: CaptureItem;
  readonly links: readonly CaptureItem[];
}

export const bytesOf = ({ type, size }: CaptureItem) => (type === "file" ? size : 0);
export const isLarge = (item: CaptureItem) => bytesOf(item) > LARGE_BYTES;

export function packTask({ codec, root }: PackRequest, items: readonly CaptureItem[]): CaptureTask {
  return { kind: "pack", codec, root, items, sizeHint: items.reduce((sum, item) => sum + bytesOf(item), 0) };
}

/** Gathers small files until there are enough for a member. */
export function createGroups(onGroup: (items: CaptureItem[]) => void): {
  add(items: readonly CaptureItem[]): void;
  /** The last ones are a group, however few. */
  end(): void;
} {
  let group: CaptureItem[] = [];
  let bytes = 0;
  const end = () => {
    if (group.length > 0) onGroup(group);
    group = [];
    bytes = 0;
  };
  return {
    /** A file and its links, which stand in one member. */
    add(items) {
      group.push(...items);
      bytes += bytesOf(items[0]!);
      if (bytes >= MEMBER_BYTES || group.length >= MEMBER_FILES) end();
    },
    end,
  };
}

function divide(items: readonly CaptureItem[]): { small: CaptureItem[][]; large: LargeUnit[] } {
  const small: CaptureItem[][] = [];
  const large: LargeUnit[] = [];
  const groups = createGroups((group) => small.push(group));
  for (let i = 0; i < items.length; i += 1) {
    const leader = items[i]!;
    const links: CaptureItem[] = [];
    while (items[i + 1]?.linkTo !== undefined) links.push(items[++i]!);
    if (isLarge(leader)) large.push({ leader, links });
    else groups.add([leader, ...links]);
  }
  groups.end();
  return { small, large };
}

export function takePacked(request: PackRequest, missed: MissedItem[], result: TaskResult): void {
  const start = request.writer.rawLength;
  missed.push(...result.missed);
  if (result.member === undefined) return;
  request.writer.append(result.member.stored, result.member.raw, result.captured.length);
  for (const item of result.captured) {
    // Completed in place: the entry was made for us, and 100,000 copies would keep the garbage collector busy.
    const entry: { -readonly [key in keyof TocEntry]: TocEntry[key] } = item.entry;
    if (item.at !== undefined) {
      entry.at = start + item.at;
      entry.length = item.stored!;
    }
    request.captured.set(entry.path, item);
  }
  request.writer.enter(result.captured.map(({ entry }) => entry));
  request.onBytes(result.member.raw.length);
}

interface OpenedLarge {
  readonly unit: LargeUnit;
  readonly described: CapturedItem;
  readonly header: Buffer;
  readonly pieces: readonly (readonly [offset: number, length: number])[];
  readonly storedSize: number;
  readonly signature: string;
  readonly file: string;
}

interface LargePlan {
  readonly tasks: readonly CaptureTask[];
  readonly totalBytes: number;
  readonly take: (result: TaskResult, index: number) => void;
  /** After all results were taken: files that moved under our eyes and deserve another attempt. */
  readonly again: readonly LargeUnit[];
}

function planLarge(
  request: PackRequest,
  missed: MissedItem[],
  units: readonly LargeUnit[],
  last: boolean,
): LargePlan {
  const opened: OpenedLarge[] = [];
  for (const unit of units) {
    const file = openFirst(request.root, unit, missed);
    if (file !== undefined) opened.push(file);
  }
  const tasks: CaptureTask[] = [];
  const places: { file: OpenedLarge; piece: number }[] = [];
  for (const file of opened) {
    for (const [piece, [offset, length]] of file.pieces.entries()) {
      const isLast = piece === file.pieces.length - 1;
      tasks.push({
        kind: "piece",
        codec: request.codec,
        file: file.file,
        offset,
        length,
        prefix: piece === 0 ? file.header : new Uint8Array(),
        suffixLength: isLast ? padding(file.storedSize) : 0,
      });
      places.push({ file, piece });
    }
  }
  const again: LargeUnit[] = [];
  let hash: Hash = createHash("sha256");
  let at = 0;
  let moved = false;
  let isDatabase = false;
  const totalBytes = opened.reduce((sum, file) => sum + file.storedSize, 0);
  const take = (result: TaskResult, index: number) => {
    const { file, piece } = places[index]!;
    const { raw, stored } = result.member!;
    const first = piece === 0;
    if (first) {
      hash = createHash("sha256");
      at = request.writer.rawLength + file.header.length;
      moved = false;
    }
    const start = first ? file.header.length : 0;
    const content = raw.subarray(start, start + file.pieces[piece]![1]);
    if (first) isDatabase = isLoneDatabase(file.unit, content);
    hash.update(content);
    moved ||= result.signature !== file.signature || result.short === true;
    request.writer.append(stored, raw, first ? 1 : 0);
    request.onBytes(raw.length);
    if (piece < file.pieces.length - 1) return;
    finishLarge(request, file, { sha256: hash.digest("hex"), at, moved });
    // The copy that SQLite makes stands later in the stream, and wins.
    if (moved && isDatabase) missed.push(explainMiss(file.unit.leader, movedDatabase()));
    else if (moved && !last) again.push(file.unit);
  };
  return { tasks, totalBytes, take, again };
}

/** Not one with links, which were entered as links to what was read. */
function isLoneDatabase({ leader, links }: LargeUnit, content: Uint8Array): boolean {
  return leader.source === undefined && links.length === 0 && isDatabaseContent(content);
}

/** Enters a finished large file and its links. A repeated attempt stands later in the stream and wins. */
function finishLarge(
  request: PackRequest,
  file: OpenedLarge,
  found: { sha256: string; at: number; moved: boolean },
): void {
  const torn = found.moved ? { torn: "it was written while being read" } : {};
  const entry = { ...file.described.entry, sha256: found.sha256 };
  const item: CapturedItem = { ...file.described, entry, ...torn };
  const place = { at: found.at, length: file.storedSize };
  request.captured.set(entry.path, item);
  request.writer.enter([{ ...entry, ...place }]);
  if (file.unit.links.length === 0) return;
  const headers = file.unit.links.map((link) =>
    encodeHeader({ ...entry, path: link.path }, { linkTo: entry.path, storedSize: 0 }),
  );
  const raw = Buffer.concat(headers);
  request.writer.append(request.compress(raw), raw, headers.length);
  for (const link of file.unit.links) {
    request.captured.set(link.path, { ...item, entry: { ...entry, path: link.path } });
    request.writer.enter([{ ...entry, path: link.path, ...place }]);
  }
}

/** When the first name of a file cannot be opened, its next one takes its place. */
function openFirst(root: string, unit: LargeUnit, missed: MissedItem[]): OpenedLarge | undefined {
  const names = [unit.leader, ...unit.links];
  for (const [i, name] of names.entries()) {
    try {
      return openLarge(root, { leader: name, links: names.slice(i + 1) });
    } catch (error) {
      missed.push(explainMiss(name, error));
    }
  }
  return undefined;
}

/** Waits until a write could no longer hide behind the file's time stamp; a file that is never at rest is not awaited. */
function statAtRest(fd: number): FileStat {
  const stat = statOpen(fd, createStat());
  for (let attempt = 0; attempt < REST_ATTEMPTS && isHot(stat); attempt += 1) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REST_MS);
    statOpen(fd, stat);
  }
  return stat;
}

function openLarge(root: string, unit: LargeUnit): OpenedLarge {
  const { leader } = unit;
  const live = systemPath(`${root}/${leader.path}`);
  const fd = openItem(leader, live);
  try {
    const stat = statAtRest(fd);
    const described = describeFile(leader, live, stat, fd);
    if (leader.source === undefined) {
      const head = Buffer.alloc(100);
      refuseLiveDatabase(live, head.subarray(0, readSync(fd, head, 0, head.length, 0)));
    }
    const { size, extents } = described.entry;
    const spans = extents ?? [[0, size] as const];
    const storedSize = spans.reduce((sum, [, length]) => sum + length, 0);
    const map = extents === undefined ? Buffer.alloc(0) : encodeSparseMap(extents, size);
    const header = Buffer.concat([
      encodeHeader(described.entry, { storedSize: storedSize + map.length }),
      map,
    ]);
    return {
      unit,
      described,
      header,
      pieces: cut(spans),
      storedSize,
      signature: isHot(stat) ? NEVER : signatureOf(stat),
      file: leader.source ?? `${root}/${leader.path}`,
    };
  } finally {
    closeSync(fd);
  }
}

/** Pieces of at most PIECE_BYTES; always at least one, which carries the header. */
function cut(spans: readonly (readonly [number, number])[]): [number, number][] {
  const pieces: [number, number][] = [];
  for (const [start, length] of spans) {
    for (let done = 0; done < length; done += PIECE_BYTES)
      pieces.push([start + done, Math.min(PIECE_BYTES, length - done)]);
  }
  return pieces.length === 0 ? [[0, 0]] : pieces;
}
