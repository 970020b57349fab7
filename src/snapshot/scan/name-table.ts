// The names of a stat cache as one block of bytes, decoded one at a time: garbage collection of 100,000 strings takes
// longer than lstat of the files. Live protection replaces the stat cache.

export interface NameTable {
  readonly nameBytes: Buffer;
  /** Where each name ends; it starts where the previous one ends. */
  readonly nameEnds: Uint32Array;
  /** latin1 if every name fits: half the memory, and cheaper to pass to system calls. */
  readonly spelling: Spelling;
}

export type Spelling = "latin1" | "utf16le";

export interface NameWriter {
  add(name: string): void;
  /** Adds a range of another table. */
  copy(from: NameTable, first: number, count: number): void;
  finish(): NameTable;
}

const ONE_BYTE = /^[\0-\xff]*$/;

export function nameAt({ nameBytes, nameEnds, spelling }: NameTable, row: number): string {
  return nameBytes.toString(spelling, row === 0 ? 0 : nameEnds[row - 1]!, nameEnds[row]!);
}

interface Copied {
  readonly from: NameTable;
  readonly first: number;
  readonly count: number;
}

export function createNameWriter(): NameWriter {
  const parts: (Copied | string[])[] = [];
  return {
    add(name) {
      const last = parts.at(-1);
      if (Array.isArray(last)) last.push(name);
      else parts.push([name]);
    },
    copy(from, first, count) {
      parts.push({ from, first, count });
    },
    finish() {
      const isNarrow = parts.every((part) =>
        Array.isArray(part) ? ONE_BYTE.test(part.join("")) : part.from.spelling === "latin1",
      );
      const spelling: Spelling = isNarrow ? "latin1" : "utf16le";
      const nameEnds = new Uint32Array(parts.reduce((sum, part) => sum + countOf(part), 0));
      const pieces: Buffer[] = [];
      let row = 0;
      let at = 0;
      for (const part of parts) {
        const piece = Array.isArray(part) ? Buffer.from(part.join(""), spelling) : transcode(part, spelling);
        const ends = nameEnds.subarray(row, row + countOf(part));
        if (Array.isArray(part)) setEnds(ends, part, at, isNarrow ? 1 : 2);
        else copyEnds(ends, part, at, isNarrow ? 1 : 2);
        pieces.push(piece);
        row += ends.length;
        at += piece.length;
      }
      return { nameBytes: Buffer.concat(pieces), nameEnds, spelling };
    },
  };
}

function countOf(part: Copied | string[]): number {
  return Array.isArray(part) ? part.length : part.count;
}

function startOf({ from, first }: Copied): number {
  return first === 0 ? 0 : from.nameEnds[first - 1]!;
}

function transcode(part: Copied, spelling: Spelling): Buffer {
  const { from, first, count } = part;
  const bytes = from.nameBytes.subarray(
    startOf(part),
    count === 0 ? startOf(part) : from.nameEnds[first + count - 1]!,
  );
  return from.spelling === spelling ? bytes : Buffer.from(bytes.toString(from.spelling), spelling);
}

function setEnds(ends: Uint32Array, names: readonly string[], start: number, width: number): void {
  let at = start;
  for (let i = 0; i < names.length; i += 1) {
    at += names[i]!.length * width;
    ends[i] = at;
  }
}

function copyEnds(ends: Uint32Array, part: Copied, start: number, width: number): void {
  const { from, first, count } = part;
  const known = from.nameEnds.subarray(first, first + count);
  const factor = from.spelling === "latin1" ? width : 1;
  const shift = start - startOf(part) * factor;
  ends.set(known);
  if (shift === 0 && factor === 1) return;
  for (let i = 0; i < count; i += 1) ends[i] = ends[i]! * factor + shift;
}
