// Records of PAX headers and maps of sparse files, read from hostile bytes. Pure.
import { readDecimal, TarError } from "./number.ts";

export type Extents = readonly (readonly [offset: number, length: number])[];

export interface PaxRecords {
  /** The last value of each key; bytes, since names and attributes need not be text. */
  readonly values: ReadonlyMap<string, Buffer>;
  /** `GNU.sparse.offset` and `.numbytes` of format 0.0, which repeat, in order. */
  readonly sparsePairs: readonly number[];
}

/** "27 mtime=1700000000.123456789\n", one after the other. */
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
  if (flat.length % 2 !== 0) throw new TarError("a sparse map has half a pair");
  const extents: [number, number][] = [];
  let end = 0;
  let sum = 0;
  for (let i = 0; i < flat.length; i += 2) {
    const offset = flat[i]!;
    const length = flat[i + 1]!;
    if (offset < end || offset + length > size) throw new TarError("a sparse map leaves its file");
    end = offset + length;
    sum += length;
    if (length > 0) extents.push([offset, length]);
  }
  if (sum !== stored) throw new TarError(`a sparse map speaks of ${sum} bytes where ${stored} are stored`);
  return extents;
}

/** Collects the map that stands before the data in format 1.0: a count, then pairs, a number a line. */
export function createSparseMapReader(limitNumbers: number): {
  /** Takes one block. Returns the numbers once all are there. */
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
