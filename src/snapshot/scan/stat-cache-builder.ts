// Builds stat caches row by row, by copying rows of an older one, or from a checkpoint's listing. Live protection replaces
// the stat cache.
import type { StatMark } from "../model/capture-item.ts";
import type { Entry, EntryType } from "../model/entry.ts";
import { parentPath } from "../model/path-bytes.ts";
import { isSidecar } from "../model/sqlite-files.ts";
import { createNameWriter } from "./name-table.ts";
import {
  baseName,
  type CachedEntry,
  COLUMNS,
  type ColumnName,
  type Extra,
  rowsOf,
  type StatCache,
  TYPE_CODES,
} from "./stat-cache.ts";

type Seen = Pick<CachedEntry, "entry" | "mark">;

export interface StatCacheBuilder {
  /** Adds a row; its children are set separately. */
  add(name: string, seen: Seen, racy: boolean): void;
  /** Copies `count` rows of an older cache, their child ranges included. */
  copy(from: StatCache, fromRow: number, count: number): void;
  /** Overwrites a row that was added. */
  replace(row: number, name: string, seen: Seen, racy: boolean): void;
  /** `complete`: the directory has no other names. */
  setChildren(row: number, first: number, count: number, complete: boolean): void;
  finish(manifest: string, rules?: string): StatCache;
}

/** Equals no digest, so that every row is checked against the current patterns. */
const NO_RULES = "";

export function createStatCacheBuilder(count: number): StatCacheBuilder {
  const names = createNameWriter();
  let added = 0;
  const digests = Buffer.alloc(count * 32);
  const extras: Record<number, Extra> = {};
  const columns = Object.fromEntries(
    COLUMNS.map(([name, Column]) => [name, new Column(count)]),
  ) as unknown as Pick<StatCache, ColumnName>;
  const set = (row: number, name: string, { entry, mark }: Seen, racy: boolean) => {
    columns.types[row] = TYPE_CODES[entry.type];
    columns.modes[row] = entry.mode;
    columns.uids[row] = entry.uid;
    columns.gids[row] = entry.gid;
    columns.mtimeSecs[row] = entry.mtimeSec;
    columns.mtimeNs[row] = entry.mtimeNs;
    columns.sizes[row] = entry.size;
    columns.ctimesMs[row] = mark.ctimeMs;
    columns.inos[row] = mark.ino;
    columns.nlinks[row] = mark.nlink;
    columns.racy[row] = racy ? 1 : 0;
    columns.special[row] = isSpecial(entry.type, name, mark.nlink) ? 1 : 0;
    if (entry.sha256 !== "") digests.write(entry.sha256, row * 32, "hex");
    const extra = pickExtra(entry);
    if (extra !== undefined) extras[row] = extra;
    else if (row in extras) delete extras[row];
  };
  return {
    add(name, seen, racy) {
      names.add(name);
      set(added, name, seen, racy);
      added += 1;
    },
    replace: set,
    copy(from, fromRow, count) {
      const end = fromRow + count;
      const row = added;
      names.copy(from, fromRow, count);
      for (let i = firstAtLeast(from.extraRows, fromRow); from.extraRows[i]! < end; i += 1) {
        const known = from.extraRows[i]!;
        extras[row + known - fromRow] = from.extras[known]!;
      }
      for (const [name] of COLUMNS) columns[name].set(from[name].subarray(fromRow, end), row);
      from.digests.copy(digests, row * 32, fromRow * 32, end * 32);
      added += count;
    },
    setChildren(row, first, childCount, complete) {
      columns.firstChild[row] = first;
      columns.childCount[row] = childCount;
      columns.partial[row] = complete ? 0 : 1;
    },
    finish: (manifest, rules = NO_RULES) => ({
      manifest,
      rules,
      count,
      digests,
      extras,
      extraRows: rowsOf(extras),
      ...columns,
      ...names.finish(),
    }),
  };
}

/** A cache with the entries of a checkpoint but no stat: every file will be hashed. */
export function cacheFromListing(
  manifest: string,
  listing: ReadonlyMap<string, Omit<Entry, "location">>,
): StatCache {
  const children = new Map<string, Omit<Entry, "location">[]>();
  for (const entry of listing.values()) {
    if (entry.path === ".") continue;
    const parent = parentPath(entry.path);
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [entry]);
    else siblings.push(entry);
  }
  const rows: Omit<Entry, "location">[] = [
    listing.get(".") ?? {
      path: ".",
      type: "directory",
      mode: 0o700,
      uid: 0,
      gid: 0,
      mtimeSec: 0,
      mtimeNs: 0,
      size: 0,
      sha256: "",
    },
  ];
  const ranges: [number, number][] = [];
  for (let row = 0; row < rows.length; row += 1) {
    const below = rows[row]!.type === "directory" ? (children.get(rows[row]!.path) ?? []) : [];
    ranges.push([rows.length, below.length]);
    for (const child of below) rows.push(child);
  }
  const builder = createStatCacheBuilder(rows.length);
  const unknown: StatMark = { ctimeMs: Number.NaN, ino: 0, nlink: 0 };
  for (const [row, entry] of rows.entries()) {
    builder.add(baseName(entry.path), { entry, mark: unknown }, true);
    // Skipped paths have no row.
    builder.setChildren(row, ...ranges[row]!, false);
  }
  return builder.finish(manifest);
}

/** Paths for which an unchanged stat is not enough. */
function isSpecial(type: EntryType, name: string, nlink: number): boolean {
  return type === "fifo" || (type === "file" && (nlink !== 1 || isSidecar(name)));
}

/** The index of the first number that is not below `least`. */
function firstAtLeast(sorted: Uint32Array, least: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < least) low = middle + 1;
    else high = middle;
  }
  return low;
}

function pickExtra({ target, group, xattrs, extents }: Omit<Entry, "location">) {
  if (target === undefined && group === undefined && xattrs === undefined && extents === undefined)
    return undefined;
  return {
    ...(target === undefined ? {} : { target }),
    ...(group === undefined ? {} : { group }),
    ...(xattrs === undefined ? {} : { xattrs }),
    ...(extents === undefined ? {} : { extents }),
  };
}
