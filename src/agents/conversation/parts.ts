// How a file that only grows is kept in the cell: as numbered parts, so that a checkpoint stores the appended bytes and not
// the whole file again. A part is named by its generation and by the offset of its first byte. Appends merge the newest
// parts (eight of one size class become one), until a part is so large that it is not merged again: few files, and each byte is
// written at most four times. A file that was rewritten gets a new generation. Pure.

export interface Part {
  readonly generation: number;
  readonly offset: number;
  readonly size: number;
}

/** The parts of a file's newest complete generation, in order, and those that an interrupted change left behind. */
export interface Chain {
  readonly generation: number;
  readonly parts: readonly Part[];
  readonly size: number;
  readonly leftovers: readonly Part[];
}

const NAME = /^(\d{4,9})-(\d{12,15})$/;
const SUFFIX = ".parts";
const SMALLEST_BYTES = 4096;
const FAN_IN = 8;
/** A part of this size is never merged again. */
export const SEALED_BYTES = 1 << 20;

export function partName({ generation, offset }: Pick<Part, "generation" | "offset">): string {
  return `${String(generation).padStart(4, "0")}-${String(offset).padStart(12, "0")}`;
}

/** Undefined for a name that no part has. */
export function parsePartName(name: string): Pick<Part, "generation" | "offset"> | undefined {
  const match = NAME.exec(name);
  if (match === null) return undefined;
  return { generation: Number(match[1]), offset: Number(match[2]) };
}

/** The directory that holds the parts of a file. */
export function partsDirectory(name: string): string {
  return name + SUFFIX;
}

/** The file whose parts a directory holds; undefined for any other directory. */
export function fileOfParts(directory: string): string | undefined {
  return directory.endsWith(SUFFIX) ? directory.slice(0, -SUFFIX.length) : undefined;
}

/**
 * A new generation is written from its end, so the one with a first part is complete. A merged part covers those that it was
 * made from, which may still be there.
 */
export function chainParts(all: readonly Part[]): Chain {
  const generation = Math.max(
    0,
    ...all.filter(({ offset }) => offset === 0).map(({ generation: each }) => each),
  );
  const parts: Part[] = [];
  let size = 0;
  const candidates = all.filter((part) => part.generation === generation);
  for (const part of candidates.sort((a, b) => a.offset - b.offset)) {
    if (part.offset !== size || part.size === 0) continue;
    parts.push(part);
    size += part.size;
  }
  const used = new Set(parts);
  return { generation, parts, size, leftovers: all.filter((part) => !used.has(part)) };
}

/** How many of the newest parts become one with the bytes to append. */
export function countMerged(sizes: readonly number[], appended: number): number {
  let merged = 0;
  let total = appended;
  for (;;) {
    const own = sizeClass(total);
    let run = 0;
    while (merged + run < sizes.length && sizeClass(sizes.at(-1 - merged - run)!) <= own) run += 1;
    if (own === Number.POSITIVE_INFINITY || run < FAN_IN - 1) return merged;
    for (const size of sizes.slice(sizes.length - merged - run, sizes.length - merged)) total += size;
    merged += run;
  }
}

function sizeClass(size: number): number {
  if (size >= SEALED_BYTES) return Number.POSITIVE_INFINITY;
  return Math.floor(Math.log(Math.max(size, SMALLEST_BYTES) / SMALLEST_BYTES) / Math.log(FAN_IN));
}
