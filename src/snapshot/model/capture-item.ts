// The words between the capture and its workers: what to pack, and what was packed. Plain data that crosses threads.
import type { Entry, EntryType } from "./entry.ts";

/** One path to be read and packed. */
export interface CaptureItem {
  /** Path in the checkpoint. */
  readonly path: string;
  readonly type: EntryType;
  /** As the walk saw it; decides how the item is packed, never what is packed. */
  readonly size: number;
  /** Where the bytes are read from, when not from the cell itself (a database's backup). */
  readonly source?: string;
  /** Hard-link group, set on every member of it. */
  readonly group?: string;
  /** Path of the group's first member: this one is packed as a link to it. */
  readonly linkTo?: string;
}

/** What stat said about a path at the moment it was captured; the stat cache compares with it next time. */
export interface StatMark {
  readonly ctimeMs: number;
  readonly ino: number;
  readonly nlink: number;
}

/** A path that was packed; `at` counts from the start of the task's raw bytes. */
export interface CapturedItem {
  readonly entry: Omit<Entry, "location">;
  readonly mark: StatMark;
  readonly at?: number;
  readonly stored?: number;
  /** Set when the file changed under every attempt to read it. */
  readonly torn?: string;
  /** What could not be kept exactly. */
  readonly degraded?: string;
}

/** A path that could not be packed. */
export interface MissedItem {
  readonly path: string;
  /** vanished: gone, as if it had been deleted before. database: must be captured through SQLite's backup. */
  readonly why: "vanished" | "unreadable" | "changed-type" | "database";
  readonly reason: string;
}

/** Small files are packed together; one task makes one member. */
export interface PackTask {
  readonly kind: "pack";
  readonly root: string;
  readonly items: readonly CaptureItem[];
  readonly sizeHint: number;
}

/** One piece of a large file: read, compress, hand back. The header and the padding come from outside. */
export interface PieceTask {
  readonly kind: "piece";
  readonly file: string;
  readonly offset: number;
  readonly length: number;
  readonly prefix: Uint8Array;
  readonly suffixLength: number;
}

/** Describe paths and hash files without packing them: is what stat calls changed really different? */
export interface HashTask {
  readonly kind: "hash";
  readonly root: string;
  readonly items: readonly CaptureItem[];
}

export type CaptureTask = (PackTask | PieceTask | HashTask) & {
  readonly codec: "gzip" | "zstd";
  /** Where tar bytes and their compressed form go, when they fit: read in place by the writer, then used again. */
  readonly memory?: TaskMemory;
};

export interface TaskMemory {
  readonly raw: SharedArrayBuffer;
  readonly stored: SharedArrayBuffer;
}

export interface TaskResult {
  readonly captured: readonly CapturedItem[];
  readonly missed: readonly MissedItem[];
  /** The tar bytes and their compressed form; absent for hash tasks and when everything was missed. */
  readonly member?: { readonly raw: Uint8Array; readonly stored: Uint8Array };
  /** For pieces: what the file looked like, to see whether it moved between pieces. */
  readonly signature?: string;
  /** For pieces: fewer bytes were there than expected; the rest is zeros. */
  readonly short?: boolean;
}
