// What the capture and its worker threads exchange: paths to pack, and what was packed. Plain data.
import type { TreeRoot } from "./cell-tree.ts";
import type { Entry, EntryType } from "./entry.ts";

/** A path to read and pack. */
export interface CaptureItem {
  /** Path in the checkpoint. */
  readonly path: string;
  readonly type: EntryType;
  /** Type and size according to the walk; decides how the item is packed, not what is packed. */
  readonly size: number;
  /** Set for a database in use: the copy that SQLite made of it, or LIVE_FILE where it could not. */
  readonly source?: string;
  /** Hard-link group, set on every member. */
  readonly group?: string;
  /** Path of the group's first member: this one is packed as a link to it. */
  readonly linkTo?: string;
  /** A file that has grown since the last checkpoint: what that has of it. */
  readonly grownFrom?: { readonly size: number; readonly sha256: string };
}

/** The `source` of a database that is read in the cell although it is in use. */
export const LIVE_FILE = "";

/** The part of stat that the stat store compares next time, taken when the path was captured. */
export interface StatMark {
  readonly ctimeMs: number;
  readonly ino: number;
  readonly nlink: number;
}

/** A path that was packed; `at` is an offset into the raw bytes of its task. */
export interface CapturedItem {
  readonly entry: Omit<Entry, "location">;
  readonly mark: StatMark;
  readonly at?: number;
  readonly stored?: number;
  /** Set when the file changed during every attempt to read it. */
  readonly torn?: string;
  /** What could not be saved exactly. */
  readonly degraded?: string;
}

/** A path that could not be packed. */
export interface MissedItem {
  readonly path: string;
  /** vanished: deleted since the walk. database: in use, must be captured through SQLite's backup. */
  readonly why: "vanished" | "unreadable" | "changed-type" | "database";
  readonly reason: string;
}

/** What was packed, by path, and what was not. */
export interface Packed {
  readonly captured: Map<string, CapturedItem>;
  readonly missed: readonly MissedItem[];
}

/** Small files that are packed together into one member. */
export interface PackTask {
  readonly kind: "pack";
  readonly root: TreeRoot;
  readonly items: readonly CaptureItem[];
  readonly sizeHint: number;
}

/** One piece of a large file: `prefix` holds its header, `suffixLength` is the padding after it. */
export interface PieceTask {
  readonly kind: "piece";
  readonly root: TreeRoot;
  readonly item: CaptureItem;
  readonly offset: number;
  readonly length: number;
  readonly prefix: Uint8Array;
  readonly suffixLength: number;
}

/** Describe paths and hash files without packing them. */
export interface HashTask {
  readonly kind: "hash";
  readonly root: TreeRoot;
  readonly items: readonly CaptureItem[];
}

/** What was appended to a file, if the rest of it is unchanged. */
export interface TailTask {
  readonly kind: "tail";
  readonly root: TreeRoot;
  readonly item: CaptureItem;
}

export type CaptureTask = (PackTask | PieceTask | HashTask | TailTask) & { readonly codec: "gzip" | "zstd" };

export interface TaskResult {
  readonly captured: readonly CapturedItem[];
  readonly missed: readonly MissedItem[];
  /**
   * The tar bytes and their compressed form, valid until the result was taken; absent for hash tasks and when every item
   * was missed.
   */
  readonly member?: { readonly raw: Uint8Array; readonly stored: Uint8Array };
  /** For pieces: identifies the state of the file, to detect a change between pieces. */
  readonly signature?: string;
  /** For pieces: the file was shorter than expected and the missing bytes are zeros. */
  readonly short?: boolean;
}
