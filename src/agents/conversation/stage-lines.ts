// Copies what was appended to a file into its parts. Whole lines only: a cut last line is copied once it is complete, so the
// copy is always a prefix of the conversation. The bytes before count as unchanged if the inode is the same, the size is
// not smaller, and both ends of what was copied are the same; otherwise everything is read and compared, and a file that
// was rewritten gets a new generation of parts.
import { hash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Disk } from "../../platform/disk.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import {
  type Chain,
  chainParts,
  countMerged,
  type Part,
  parsePartName,
  partName,
  SEALED_BYTES,
} from "./parts.ts";
import { putFile } from "./put-file.ts";
import { redactLines } from "./redact.ts";
import { type OpenedFile, readRange, SourceError } from "./source.ts";
import type { LinesState } from "./state.ts";

export interface StagedLines {
  readonly state: LinesState;
  /** What was appended; undefined when everything was read again. */
  readonly appended: Buffer | undefined;
}

const EDGE_BYTES = 4096;
const BLOCK_BYTES = 8 * 1024 * 1024;
/** A larger file is not a conversation, and would not fit into memory. */
const LIMIT_BYTES = 1024 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Undefined when the file has no whole line yet. `directory` exists. */
export async function stageLines(
  disk: Disk,
  source: OpenedFile,
  directory: string,
  known: LinesState | undefined,
): Promise<StagedLines | undefined> {
  const found = readParts(directory);
  const isKnown = known !== undefined && known.parts === markParts(directory) && hasGrown(source, known);
  const from = isKnown ? known.offset : 0;
  if (isKnown && source.stat.size === from) return { state: known, appended: Buffer.alloc(0) };
  const { bytes, end } = await readLines(source, from);
  if (end === from && isKnown) return { state: known, appended: Buffer.alloc(0) };
  if (!isKnown) refuseShorter(directory, found, bytes);
  if (end === from) return undefined;
  if (isKnown) append(disk, directory, found, bytes);
  else compareAndStore(disk, directory, found, bytes);
  const { dev, ino } = source.stat;
  const edges = readEdges(source.fd, end);
  const state: LinesState = { kind: "lines", dev, ino, offset: end, edges, parts: markParts(directory) };
  return { state, appended: isKnown ? bytes : undefined };
}

/** An append-only file that became shorter was damaged: the earlier copy is kept. */
function refuseShorter(directory: string, found: readonly Part[], bytes: Buffer): void {
  const chain = chainParts(found);
  if (chain.size <= bytes.length) return;
  const copy = Buffer.concat(readAll(directory, chain.parts));
  if (copy.subarray(0, bytes.length).equals(bytes)) throw new SourceError("it has become shorter");
}

function hasGrown({ fd, stat }: OpenedFile, known: LinesState): boolean {
  return (
    stat.dev === known.dev &&
    stat.ino === known.ino &&
    stat.size >= known.offset &&
    readEdges(fd, known.offset) === known.edges
  );
}

/** The first and the last bytes before `end`. */
export function readEdges(fd: number, end: number): string {
  const head = readRange(fd, 0, Math.min(EDGE_BYTES, end));
  const tail = readRange(fd, Math.max(0, end - EDGE_BYTES), end);
  return hash("sha256", Buffer.concat([head, tail]));
}

/** Whole lines from `from` on, without their secrets, and where they end in the file. */
async function readLines({ fd, stat }: OpenedFile, from: number): Promise<{ bytes: Buffer; end: number }> {
  if (stat.size - from > LIMIT_BYTES) throw new SourceError(`it has more than ${LIMIT_BYTES} bytes`);
  const clean: Buffer[] = [];
  let end = from;
  for (let length = BLOCK_BYTES; end < stat.size; ) {
    const block = readRange(fd, end, Math.min(end + length, stat.size));
    const lines = block.lastIndexOf(NEWLINE) + 1;
    if (lines > 0) clean.push((await redactLines(block.subarray(0, lines))).bytes);
    end += lines;
    if (end + (block.length - lines) >= stat.size || block.length === 0) break;
    length = lines > 0 ? BLOCK_BYTES : length * 2;
  }
  return { bytes: Buffer.concat(clean), end };
}

export function readParts(directory: string): Part[] {
  return listNames(directory).flatMap((name): Part[] => {
    const parsed = parsePartName(name);
    const stat = lstatSync(join(directory, name), { throwIfNoEntry: false });
    return parsed === undefined || !stat?.isFile() ? [] : [{ ...parsed, size: stat.size }];
  });
}

function listNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
    return [];
  }
}

/** Changes whenever a part is replaced, added or removed: by a restore, or by an agent. */
export function markParts(directory: string): string {
  const marks = listNames(directory)
    .sort()
    .map((name) => {
      const stat = lstatSync(join(directory, name), { throwIfNoEntry: false });
      return `${name} ${stat?.ino} ${stat?.size} ${stat?.mtimeMs} ${stat?.ctimeMs}`;
    });
  return hash("sha256", marks.join("\n"));
}

/** A merged part is written first, under the name of the oldest one, then those that it covers are removed. */
function append(disk: Disk, directory: string, found: readonly Part[], bytes: Buffer): void {
  const chain = chainParts(found);
  removeParts(directory, chain.leftovers);
  const merged = countMerged(
    chain.parts.map(({ size }) => size),
    bytes.length,
  );
  const old = chain.parts.slice(chain.parts.length - merged);
  const { generation } = chain;
  const name = partName({ generation, offset: old[0]?.offset ?? chain.size });
  putFile(disk, join(directory, name), Buffer.concat([...readAll(directory, old), bytes]));
  crashPoint("agents.conversation.part-written");
  removeParts(directory, old.slice(1));
  crashPoint("agents.conversation.parts-merged");
}

function compareAndStore(disk: Disk, directory: string, found: readonly Part[], bytes: Buffer): void {
  const chain = chainParts(found);
  if (chain.size <= bytes.length && isSame(directory, chain, bytes)) {
    removeParts(directory, chain.leftovers);
    if (chain.size < bytes.length) append(disk, directory, chain.parts, bytes.subarray(chain.size));
    return;
  }
  const generation = Math.max(-1, ...found.map((part) => part.generation)) + 1;
  // From the end: the generation is complete as soon as it has its first part.
  for (const [start, end] of cutLines(bytes).reverse()) {
    putFile(disk, join(directory, partName({ generation, offset: start })), bytes.subarray(start, end));
    crashPoint("agents.conversation.generation-part-written");
  }
  removeParts(directory, found);
  crashPoint("agents.conversation.old-generation-removed");
}

function isSame(directory: string, { parts }: Chain, bytes: Buffer): boolean {
  return parts.every(({ offset, size }, i) =>
    bytes.subarray(offset, offset + size).equals(readAll(directory, [parts[i]!])[0]!),
  );
}

/** Ranges of whole lines, each large enough never to be merged, except the last. */
function cutLines(bytes: Buffer): [start: number, end: number][] {
  const ranges: [number, number][] = [];
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, start + SEALED_BYTES - 1);
    const end = newline < 0 ? bytes.length : newline + 1;
    ranges.push([start, end]);
    start = end;
  }
  return ranges;
}

function readAll(directory: string, parts: readonly Part[]): Buffer[] {
  return parts.map((part) => readFileSync(join(directory, partName(part))));
}

function removeParts(directory: string, parts: readonly Part[]): void {
  for (const part of parts) unlinkSync(join(directory, partName(part)));
}
