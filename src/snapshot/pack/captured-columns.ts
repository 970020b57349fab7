// What a worker captured, in columns, for the way between threads: cloned as objects, a hundred thousand of them carry the
// names of their fields a hundred thousand times (0.45 s of processor time at both ends, 0.1 s this way). Paths do not
// travel at all: whoever gave the task has them. Pure.
import type { CapturedItem, CaptureItem } from "../model/capture-item.ts";
import { TYPE_CODES, TYPES } from "../scan/stat-cache.ts";

export interface CapturedColumns {
  /** 64 characters an item, blanks where there is none. */
  readonly sha256s: string;
  /** WIDTH numbers an item. */
  readonly numbers: Float64Array<ArrayBuffer>;
  /** What few items have, by their place. */
  readonly rest: readonly (readonly [number, Rest])[];
}

type Rest = Pick<CapturedItem, "torn" | "degraded"> &
  Pick<CapturedItem["entry"], "target" | "group" | "xattrs" | "extents">;

const WIDTH = 13;
const SHA_LENGTH = 64;
const NO_BYTES = -1;

/** `asked` is the task's list: what was captured stands in it in the same order. */
export function toColumns(items: readonly CapturedItem[], asked: readonly CaptureItem[]): CapturedColumns {
  const numbers = new Float64Array(items.length * WIDTH);
  const rest: [number, Rest][] = [];
  let place = 0;
  for (let i = 0; i < items.length; i += 1) {
    const { entry, mark, at, stored, torn, degraded } = items[i]!;
    const { target, group, xattrs, extents } = entry;
    const row = i * WIDTH;
    numbers[row] = TYPE_CODES[entry.type];
    numbers[row + 1] = entry.mode;
    numbers[row + 2] = entry.uid;
    numbers[row + 3] = entry.gid;
    numbers[row + 4] = entry.mtimeSec;
    numbers[row + 5] = entry.mtimeNs;
    numbers[row + 6] = entry.size;
    numbers[row + 7] = mark.ctimeMs;
    numbers[row + 8] = mark.ino;
    numbers[row + 9] = mark.nlink;
    numbers[row + 10] = at ?? NO_BYTES;
    numbers[row + 11] = stored ?? NO_BYTES;
    while (asked[place]!.path !== entry.path) place += 1;
    numbers[row + 12] = place;
    place += 1;
    if ((target ?? group ?? xattrs ?? extents ?? torn ?? degraded) !== undefined)
      rest.push([i, definedOf({ target, group, xattrs, extents, torn, degraded })]);
  }
  return {
    sha256s: items.map(({ entry }) => entry.sha256.padEnd(SHA_LENGTH)).join(""),
    numbers,
    rest,
  };
}

export function fromColumns(
  { sha256s, numbers, rest }: CapturedColumns,
  asked: readonly CaptureItem[],
): CapturedItem[] {
  const count = numbers.length / WIDTH;
  const items: CapturedItem[] = new Array(count);
  for (let i = 0; i < count; i += 1) {
    const row = i * WIDTH;
    const entry = {
      path: asked[numbers[row + 12]!]!.path,
      type: TYPES[numbers[row]!]!,
      mode: numbers[row + 1]!,
      uid: numbers[row + 2]!,
      gid: numbers[row + 3]!,
      mtimeSec: numbers[row + 4]!,
      mtimeNs: numbers[row + 5]!,
      size: numbers[row + 6]!,
      sha256: sha256s.slice(i * SHA_LENGTH, (i + 1) * SHA_LENGTH).trimEnd(),
    };
    const mark = { ctimeMs: numbers[row + 7]!, ino: numbers[row + 8]!, nlink: numbers[row + 9]! };
    const at = numbers[row + 10]!;
    items[i] = at === NO_BYTES ? { entry, mark } : { entry, mark, at, stored: numbers[row + 11]! };
  }
  for (const [i, { torn, degraded, ...more }] of rest) {
    const { entry, ...item } = items[i]!;
    items[i] = { ...item, entry: { ...entry, ...more }, ...definedOf({ torn, degraded }) };
  }
  return items;
}

type Defined<T> = { [key in keyof T]?: NonNullable<T[key]> };

function definedOf<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
