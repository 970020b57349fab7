// One row of the stat store: what is known of a path since the last checkpoint. Enough to tell by lstat alone that the path is
// unchanged, and to build its entry in a listing.
import { ctimeMs, type FileStat } from "../../platform/file-stat.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import type { Entry, EntryType } from "../model/entry.ts";

/** The part that a walk compares. */
export interface StatRow {
  /** The last component of its path; "." for the cell itself. */
  readonly name: string;
  readonly type: EntryType;
  readonly mode: number;
  readonly size: number;
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  /** NaN when it is unknown, so that it equals no stat. */
  readonly ctimeMs: number;
  readonly ino: number;
  readonly nlink: number;
  /** It could have changed after its stat was taken: its stat proves nothing. */
  readonly isRacy: boolean;
  /** For a directory: not all of its names have a row, so it must be read again. */
  readonly isPartial: boolean;
}

export interface EntryRow extends StatRow {
  readonly uid: number;
  readonly gid: number;
  readonly sha256: string;
  readonly extra?: Extra;
}

/** The fields of an entry that few have. */
export type Extra = Pick<Entry, "target" | "group" | "xattrs" | "extents">;

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The stat is the same, and the row is not racy. */
export function isUnchanged(row: StatRow, stat: FileStat): boolean {
  return (
    !row.isRacy &&
    row.ctimeMs === ctimeMs(stat) &&
    row.size === (row.type === "file" ? stat.size : 0) &&
    row.mtimeSec === stat.mtimeSec &&
    row.mtimeNs === stat.mtimeNs &&
    row.ino === stat.ino &&
    row.mode === (stat.mode & 0o7777)
  );
}

export function createRow(
  { entry, mark }: Pick<CapturedItem, "entry" | "mark">,
  { isRacy, isPartial }: Pick<StatRow, "isRacy" | "isPartial">,
): EntryRow {
  const extra = extraOf(entry);
  const row = {
    name: baseName(entry.path),
    type: entry.type,
    mode: entry.mode,
    size: entry.size,
    mtimeSec: entry.mtimeSec,
    mtimeNs: entry.mtimeNs,
    ctimeMs: mark.ctimeMs,
    ino: mark.ino,
    nlink: mark.nlink,
    isRacy,
    isPartial,
    uid: entry.uid,
    gid: entry.gid,
    sha256: entry.sha256,
  };
  return extra === undefined ? row : { ...row, extra };
}

/** A row with the entry of a checkpoint but no stat: the path will be hashed, and a directory read. */
export function createUnknownRow(entry: Omit<Entry, "location">): EntryRow {
  const mark = { ctimeMs: Number.NaN, ino: 0, nlink: 0 };
  return createRow({ entry, mark }, { isRacy: true, isPartial: entry.type === "directory" });
}

export function entryOf(row: EntryRow, path: string): Omit<Entry, "location"> {
  return {
    path,
    type: row.type,
    mode: row.mode,
    uid: row.uid,
    gid: row.gid,
    mtimeSec: row.mtimeSec,
    mtimeNs: row.mtimeNs,
    size: row.size,
    sha256: row.sha256,
    ...row.extra,
  };
}

function extraOf({ target, group, xattrs, extents }: Omit<Entry, "location">): Extra | undefined {
  if (target === undefined && group === undefined && xattrs === undefined && extents === undefined)
    return undefined;
  return {
    ...(target === undefined ? {} : { target }),
    ...(group === undefined ? {} : { group }),
    ...(xattrs === undefined ? {} : { xattrs }),
    ...(extents === undefined ? {} : { extents }),
  };
}
