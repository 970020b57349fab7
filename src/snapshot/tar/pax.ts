// Parses PAX records and sparse maps from untrusted bytes. Pure.
import { readDecimal, readNumber, TarError } from "./number.ts";

export type Extents = readonly (readonly [offset: number, length: number])[];

export interface PaxRecords {
  /** The last value of each key, as bytes: names and attributes need not be text. */
  readonly values: ReadonlyMap<string, Buffer>;
  /** `GNU.sparse.offset` and `.numbytes` of format 0.0, which repeat, in order. */
  readonly sparsePairs: readonly number[];
}

/** Records like "30 mtime=1700000000.123456789\n". */
export function readPaxRecords(bytes: Buffer): PaxRecords {
  const values = new Map<string, Buffer>();
  const sparsePairs: number[] = [];
  let at = 0;
  while (at < bytes.length) {
    const space = bytes.indexOf(0x20, at);
    if (space < 0 || space - at > 10) throw new TarError("a PAX record has no length");
    const length = readDecimal(bytes.toString("latin1", at, space), "the length of a PAX record");
    const end = at + length;
    const equals = bytes.indexOf(0x3d, space);
    if (end > bytes.length || equals < 0 || equals >= end || bytes[end - 1] !== 0x0a)
      throw new TarError("a PAX record is malformed");
    const key = bytes.toString("utf8", space + 1, equals);
    if (key.includes("\0")) throw new TarError("the name of a PAX record contains a NUL byte");
    const value = bytes.subarray(equals + 1, end - 1);
    if (key === "GNU.sparse.offset" || key === "GNU.sparse.numbytes")
      sparsePairs.push(readDecimal(value.toString("latin1"), key));
    values.set(key, value);
    at = end;
  }
  return { values, sparsePairs };
}

/** "0,512,4096,100" of format 0.1. */
export function readSparseList(text: string): number[] {
  if (text === "") return [];
  return text.split(",").map((part) => readDecimal(part, "the sparse map"));
}

/** Pairs of numbers as extents: ascending, within the file, empty ones dropped. */
export function checkExtents(flat: readonly number[], size: number, stored: number): Extents {
  if (flat.length % 2 !== 0) throw new TarError("a sparse map has an odd number of values");
  const extents: [number, number][] = [];
  let end = 0;
  let sum = 0;
  for (let i = 0; i < flat.length; i += 2) {
    const offset = flat[i]!;
    const length = flat[i + 1]!;
    if (offset < end || offset + length > size) throw new TarError("a sparse map exceeds its file");
    end = offset + length;
    sum += length;
    if (length > 0) extents.push([offset, length]);
  }
  if (sum !== stored) throw new TarError(`a sparse map lists ${sum} bytes but ${stored} are stored`);
  return extents;
}

/** Parses the map that precedes the data in format 1.0: a count, then pairs, one number per line. */
export function createSparseMapReader(limitNumbers: number): {
  /** Adds one block. Returns the numbers when they are complete. */
  block(bytes: Uint8Array): number[] | undefined;
} {
  const numbers: number[] = [];
  let digits = "";
  let wanted = -1;
  return {
    block(bytes) {
      for (const byte of bytes) {
        if (byte !== 0x0a) {
          digits += String.fromCharCode(byte);
          if (digits.length > 16) throw new TarError("the sparse map is not a list of numbers");
          continue;
        }
        const number = readDecimal(digits, "the sparse map");
        digits = "";
        if (wanted >= 0) numbers.push(number);
        else wanted = number * 2;
        if (wanted > limitNumbers) throw new TarError("the sparse map is too long");
        if (numbers.length === wanted) return numbers;
      }
      return undefined;
    },
  };
}

/** The sparse map of the old GNU type `S`, as far as it was read. */
export interface OldSparse {
  readonly flat: number[];
  readonly size: number;
  readonly continued: boolean;
}

export function oldSparse(block: Buffer): OldSparse {
  const size = readNumber(block, 483, 12, "the real size");
  if (size < 0) throw new TarError("the real size is negative");
  return { flat: readPairs(block, 386, 4), size, continued: block[482] === 1 };
}

export function readPairs(block: Buffer, at: number, count: number): number[] {
  const flat: number[] = [];
  for (let i = 0; i < count; i += 1) {
    const start = at + i * 24;
    if (block[start] === 0) break;
    const offset = readNumber(block, start, 12, "the sparse map");
    const length = readNumber(block, start + 12, 12, "the sparse map");
    if (offset < 0 || length < 0) throw new TarError("the sparse map is negative");
    flat.push(offset, length);
  }
  return flat;
}
