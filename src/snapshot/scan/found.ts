// What a scan of a cell found: the walk, entry by entry, and the survey that compares it with the last checkpoint.
// Types only.
import type { CapturedItem, CaptureItem } from "../model/capture-item.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import type { StatCache } from "./stat-cache.ts";

/** A path that exists. `row` is its row in the stat cache if it was there with the same type, else -1. */
export interface Found {
  readonly path: string;
  readonly type: EntryType;
  readonly row: number;
  /** Stat is the same as in the cache, and the cached row is not racy. */
  readonly unchanged: boolean;
  readonly size: number;
  readonly nlink: number;
  /** Exact device and inode, set for files with several names: equal means the same file. */
  readonly inode?: string;
}

/** The children of a directory that was read with readdir: a contiguous range of `found`. */
export interface Run {
  readonly directory: number;
  readonly first: number;
  readonly count: number;
  /** Every name in it was added: none was excluded, skipped or unreadable. */
  readonly complete: boolean;
}

/** Every path that exists is either in `found` or marked in `unchangedRows`, never both. */
export interface Walk {
  /** Paths that were checked one by one, the cell's root first, children after their directory. */
  readonly found: Found[];
  /** 1 for each unchanged cache row with a single name, in a directory that is itself unchanged. */
  readonly unchangedRows: Uint8Array;
  /** For each found path, its row in a directory that was not read again; -1 for the others. */
  readonly slots: number[];
  readonly runs: Run[];
  /** Cache rows that no longer exist or changed type. */
  readonly gone: number[];
  readonly flaws: Flaw[];
  /** Directories left for a later `resume`. */
  readonly deferred: string[];
}

/** How a cell differs from the last checkpoint. */
export interface Survey {
  readonly cache: StatCache | undefined;
  readonly walk: Walk;
  /** Digest of the exclude patterns. */
  readonly rules: string;
  /** When the walk started: later changes may have been missed. */
  readonly scanStartMs: number;
  /** The same by the clock that file systems use, and a tick earlier: a directory that changed since may have other names. */
  readonly namesSinceMs: number;
  /** Inodes of files that processes have mapped for writing: they may change without a change in their stat. */
  readonly mapped: ReadonlySet<number>;
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
