// A layer's table of contents: the paths that it sets or removes, and where the bytes of each file are. JSON lines: a
// header, the members, then one row per path. Lazarus restores from the table; the tar stream is for other tools.

import zlib from "node:zlib";
import { messageOf } from "../../platform/errors.ts";
import type { EntryType } from "../model/entry.ts";
import { gzipCodec } from "./codec.ts";
import {
  createRowText,
  type Extra,
  NO_BYTES,
  type Row,
  type TocEntry,
  writeLine,
  writeRow,
} from "./toc-row.ts";

export interface Toc {
  /** Compressed length, raw length and entries of each member, in order; offsets are their running sums. */
  readonly members: readonly Member[];
  /** Paths that this layer sets, in the order of their headers. Locations carry no layer yet. */
  readonly entries: readonly TocEntry[];
  /** Paths of lower layers that this layer removes; children are listed as well. */
  readonly removed: readonly string[];
}

export interface Member {
  readonly stored: number;
  readonly raw: number;
  /** Number of entries whose header is in this member. */
  readonly entries: number;
}

/** The index of the member that holds raw offset `at`; `starts` has one more element for the end of the last one. */
export function memberAt(starts: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = starts.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

const VERSION = 1;
/** Version of a table with continued files: a reader that does not support them would restore only their last part. */
const CONTINUED_VERSION = 2;
const TYPE_OF: Readonly<Record<string, EntryType>> = { f: "file", d: "directory", l: "symlink", p: "fifo" };
const NEWLINE = 0x0a;
/** Larger strings are garbage that only a full collection frees: with a megabyte, reading a large table took 30 MB more. */
const BLOCK_BYTES = 1 << 16;

/** No table inflates to more than this: a JavaScript string cannot be much longer. Enough for two million paths in one layer. */
export const TOC_LIMIT_BYTES = 480 << 20;

export class TocError extends Error {}

export function encodeToc(toc: Toc): Buffer {
  const encoder = createTocEncoder();
  encoder.add(toc.entries);
  return encoder.finish(toc.members, toc.removed).packed;
}

/** Encodes a table while its layer is written. Each block of rows is one gzip member. */
export interface TocEncoder {
  readonly count: number;
  /** Whether any entry continues a file of the layers below. */
  readonly isContinued: boolean;
  add(entries: readonly TocEntry[]): void;
  /** Throws TocError if no reader could read the table. `bytes` is its inflated length. */
  finish(members: readonly Member[], removed: readonly string[]): { packed: Buffer; bytes: number };
}

/** About 200 kB of text. */
const BLOCK_ROWS = 1024;

export function createTocEncoder(): TocEncoder {
  const blocks: Buffer[] = [];
  let count = 0;
  let rows = 0;
  let bytes = 0;
  let isContinued = false;
  let text = createRowText();
  const flush = () => {
    blocks.push(packText(text.bytes.subarray(0, text.length), rows));
    bytes += text.length;
    text.length = 0;
    rows = 0;
  };
  return {
    get count() {
      return count;
    },
    get isContinued() {
      return isContinued;
    },
    add(entries) {
      count += entries.length;
      for (const entry of entries) {
        isContinued ||= entry.after !== undefined;
        writeRow(text, entry);
        rows += 1;
        if (rows === BLOCK_ROWS) flush();
      }
    },
    finish(members, removed) {
      const head = createRowText();
      const version = isContinued ? CONTINUED_VERSION : VERSION;
      writeLine(head, JSON.stringify({ "lazarus-toc": version, entries: count, removed: removed.length }));
      writeLine(head, JSON.stringify(members.flatMap(({ stored, raw, entries }) => [stored, raw, entries])));
      for (const path of removed) writeLine(text, JSON.stringify([path]));
      const last = text.bytes.subarray(0, text.length);
      const first = head.bytes.subarray(0, head.length);
      text = createRowText();
      bytes += first.length + last.length;
      if (bytes > TOC_LIMIT_BYTES) throw new TocError(`its table of contents has ${bytes} bytes`);
      if (blocks.length === 0)
        return { packed: packText(Buffer.concat([first, last]), rows + removed.length), bytes };
      if (last.length > 0) blocks.push(packText(last, rows + removed.length));
      return { packed: Buffer.concat([packText(first, 0), ...blocks]), bytes };
    },
  };
}

function packText(text: Buffer, rows: number): Buffer {
  // Not worth loading a library for fewer rows.
  if (rows < BLOCK_ROWS) return zlib.gzipSync(text);
  return gzipCodec.compressFast(text);
}

/**
 * Decodes a table; throws TocError on any deviation from the format. `limitBytes` bounds the inflated size. With `only`,
 * just the rows of those paths and of hard links are decoded, which takes a fifth of the time for 100,000 rows.
 */
export function decodeToc(payload: Uint8Array, limitBytes: number, only?: ReadonlySet<string>): Toc {
  const entries: TocEntry[] = [];
  const removed: string[] = [];
  const visitor: TocVisitor = {
    entry: (entry) => entries.push(entry),
    removed: (path) => removed.push(path),
  };
  return { members: visitToc(payload, limitBytes, visitor, only), entries, removed };
}

/** Called with the rows of a table in their order. */
export interface TocVisitor {
  entry(entry: TocEntry): void;
  removed(path: string): void;
}

/** Decodes a table row by row, for callers that do not keep the rows. Discard what was visited before an error. */
export function visitToc(
  payload: Uint8Array,
  limitBytes: number,
  visitor: TocVisitor,
  only?: ReadonlySet<string>,
): readonly Member[] {
  const text = inflate(payload, limitBytes);
  const headEnd = text.indexOf(NEWLINE);
  const membersEnd = text.indexOf(NEWLINE, headEnd + 1);
  const head = parse(text.toString("utf8", 0, headEnd)) as Record<string, unknown>;
  const version = head?.["lazarus-toc"];
  if (version !== VERSION && version !== CONTINUED_VERSION) {
    throw new TocError(
      `its table of contents has version ${String(version)}; this version of Lazarus reads ${CONTINUED_VERSION}`,
    );
  }
  const members = membersFrom(parse(text.toString("utf8", headEnd + 1, membersEnd)));
  const counts = { rows: 0, entries: 0, removed: 0 };
  for (const block of blocksOf(text, membersEnd + 1)) {
    const lines = only === undefined ? [] : block.split("\n");
    const wanted = only === undefined ? block.replaceAll("\n", ",") : selectRows(lines, only).join(",");
    counts.rows += lines.length;
    // One parse for hundreds of rows is three times faster than one per row.
    for (const row of parse(`[${wanted}]`) as Row[]) {
      if (!Array.isArray(row) || typeof row[0] !== "string") throw new TocError("bad row");
      if (row.length === 1) visitor.removed(checkPath(row[0]));
      else visitor.entry(fromRow(row));
      counts[row.length === 1 ? "removed" : "entries"] += 1;
    }
  }
  const isComplete =
    only === undefined
      ? counts.entries === head["entries"] && counts.removed === head["removed"]
      : counts.rows === Number(head["entries"]) + Number(head["removed"]);
  if (!isComplete) throw new TocError("rows are missing");
  return members;
}

function membersFrom(flat: unknown): Member[] {
  if (!Array.isArray(flat) || flat.length % 3 !== 0 || !flat.every(isCount))
    throw new TocError("bad member table");
  const members: Member[] = [];
  for (let i = 0; i < flat.length; i += 3)
    members.push({ stored: flat[i]!, raw: flat[i + 1]!, entries: flat[i + 2]! });
  return members;
}

/** The complete lines from `start` on, some hundreds at a time. */
function* blocksOf(text: Buffer, start: number): Generator<string> {
  for (let at = start; at < text.length; ) {
    const last = text.lastIndexOf(NEWLINE, at + BLOCK_BYTES);
    const end = last >= at ? last : text.indexOf(NEWLINE, at);
    if (end < 0) return;
    yield text.toString("utf8", at, end);
    at = end + 1;
  }
}

/** A row starts with its path as a JSON string; the sequence `","` can only follow the end of it. */
function selectRows(rows: readonly string[], only: ReadonlySet<string>): string[] {
  const keys = new Set([...only].map((path) => JSON.stringify(path).slice(1, -1)));
  return rows.filter((row) => {
    const end = row.indexOf('","', 2);
    if (keys.has(row.slice(2, end < 0 ? -2 : end))) return true;
    return row.endsWith("}]") && row.includes('"group":');
  });
}

function inflate(payload: Uint8Array, limitBytes: number): Buffer {
  try {
    const chunkSize = Math.max(16_384, Math.min(payload.length * 5, limitBytes, 1 << 25));
    return zlib.gunzipSync(payload, { maxOutputLength: limitBytes, chunkSize });
  } catch (error) {
    throw new TocError(`its table of contents cannot be decompressed: ${messageOf(error)}`);
  }
}

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    throw new TocError("its table of contents is not JSON lines");
  }
}

function fromRow(row: Row): TocEntry {
  const [path, code, mode, uid, gid, mtimeSec, mtimeNs, size, sha256, at, extra] = row as Exclude<
    Row,
    [string]
  >;
  const type = TYPE_OF[code];
  const isValid =
    type !== undefined &&
    isCount(mode) &&
    mode <= 0o7777 &&
    isCount(uid) &&
    isCount(gid) &&
    Number.isSafeInteger(mtimeSec) &&
    isCount(mtimeNs) &&
    mtimeNs < 1_000_000_000 &&
    isCount(size) &&
    typeof sha256 === "string" &&
    (at === NO_BYTES || isCount(at));
  if (!isValid) throw new TocError(`bad row for ${JSON.stringify(path)}`);
  const base = { path: checkPath(path), type, mode, uid, gid, mtimeSec, mtimeNs, size, sha256 };
  if (extra === undefined) return at === NO_BYTES ? base : { ...base, at, length: size };
  const { stored, ...known } = checkExtra(path, extra);
  if (known.after !== undefined && !isContinuation(base, at, extra))
    throw new TocError(`bad details for ${JSON.stringify(path)}`);
  return at === NO_BYTES ? { ...base, ...known } : { ...base, ...known, at, length: stored ?? size };
}

/** Stored bytes that complete the file, and no holes. */
function isContinuation({ type, size }: TocEntry, at: number, { after, stored, extents }: Extra): boolean {
  return type === "file" && at !== NO_BYTES && extents === undefined && after! + (stored ?? 0) === size;
}

/** An empty name, a dot name, or a zero byte. */
const LEAVES = /(?:^|\/)\.{0,2}(?:\/|$)|\0/;

/** Layers are untrusted: no path may leave the cell. */
export function checkPath(path: string): string {
  if (path === ".") return path;
  if (LEAVES.test(path)) throw new TocError(`the path ${JSON.stringify(path.slice(0, 200))} leaves the cell`);
  return path;
}

function checkExtra(path: string, extra: Extra): Extra {
  const { target, group, xattrs, extents, stored, after } = extra;
  const isValid =
    (target === undefined || typeof target === "string") &&
    (group === undefined || typeof group === "string") &&
    (stored === undefined || isCount(stored)) &&
    (after === undefined || isCount(after)) &&
    (xattrs === undefined ||
      (Array.isArray(xattrs) &&
        xattrs.every(
          (pair) => pair.length === 2 && pair.every((text: unknown) => typeof text === "string"),
        ))) &&
    (extents === undefined ||
      (Array.isArray(extents) && extents.every((pair) => pair.length === 2 && pair.every(isCount))));
  if (!isValid) throw new TocError(`bad details for ${JSON.stringify(path)}`);
  return extra;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
