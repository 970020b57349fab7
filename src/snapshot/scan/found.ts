// What a scan of a cell found, and the survey that compares it with the last checkpoint. Types only.
import type { CapturedItem, CaptureItem } from "../model/capture-item.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import type { StatRow } from "./stat-row.ts";
import type { StatRows } from "./stat-rows.ts";

/** A path that exists. */
export interface Found {
  readonly path: string;
  readonly type: EntryType;
  /** Its row, if it was in the last checkpoint with the same type. */
  readonly row: StatRow | undefined;
  /** Stat is the same as in the row, and the row is not racy. */
  readonly unchanged: boolean;
  readonly size: number;
  readonly nlink: number;
  /** Exact device and inode, set for files with several names: equal means the same file. */
  readonly inode?: string;
  /** Set for a directory that is not the one in its row, or has another mode: the rows below it are not trusted. */
  readonly isOther?: true;
}

/** How a cell differs from the rows. A path with a row that is neither `found` nor `gone` is unchanged. */
export interface Walk {
  /**
   * New and changed paths, by path, and unchanged ones for which that is not enough: files with several names, sidecars of
   * databases, FIFOs.
   */
  readonly found: ReadonlyMap<string, Found>;
  /** Rows that no longer exist or changed type; whether it was a directory. */
  readonly gone: ReadonlyMap<string, boolean>;
  /** Directories whose names were read, and whether all of them have, or will have, a row. */
  readonly read: ReadonlyMap<string, boolean>;
  /** What cannot be captured, by path. */
  readonly flaws: ReadonlyMap<string, Flaw>;
  /** Directories left for a later `resume`. */
  readonly deferred: ReadonlySet<string>;
}

/** How a cell differs from the last checkpoint. */
export interface Survey {
  readonly rows: StatRows;
  readonly walk: Walk;
  /** Digest of the exclude patterns. */
  readonly rules: string;
  /** When the walk started: later changes may have been missed. */
  readonly scanStartMs: number;
  /** A tick before the walk started, by the clock that file systems use: a directory that changed since may have other names. */
  readonly namesSinceMs: number;
  /** Inodes of files that processes have mapped for writing: they may change without a change in their stat. */
  readonly mapped: ReadonlySet<number>;
  /** When mappings were scanned, by the clock that file systems use: a file that changed since may be mapped as well. */
  readonly mappedSinceMs: number;
  /** Only new names in some directories were searched for. */
  readonly isPartial: boolean;
  /** To be stored, in layer order. */
  readonly changed: readonly CaptureItem[];
  /** Stat differed but the content is the same: the entry with its new stat. */
  readonly refreshed: ReadonlyMap<string, CapturedItem>;
  /** Removed since the last checkpoint, in path order. */
  readonly removed: readonly string[];
  /** The removed paths that were directories. */
  readonly removedDirectories: ReadonlySet<string>;
  readonly flaws: readonly Flaw[];
  /** Databases in use, by path, and the file to read: a copy, or the file itself where SQLite could not make one. */
  readonly sources: ReadonlyMap<string, string>;
}
