// The data of a checkpoint: its entries, its metadata and its reference in the vault's index.
import type { ConversationPosition } from "../../agents/conversation/cell.ts";
import type { FlowPosition } from "../../flow/operations/positions.ts";
import type { RunPosition } from "../../run/store/positions.ts";

/** The type of an entry. */
export type EntryType = "file" | "directory" | "symlink" | "fifo";

/** Where a file's bytes are stored: in the raw tar stream of one layer. */
export interface Location {
  /** Digest of the layer: `sha256:…`. */
  readonly layer: string;
  /** Offset of the first stored byte in the layer's uncompressed tar stream. */
  readonly at: number;
  /** Bytes stored there: the file's size, the sum of the extents of a sparse file, or what was appended to a file. */
  readonly length: number;
  /** A file that continues a version below it: where the bytes before these are, in order. */
  readonly before?: readonly Location[];
}

/** All bytes of a file in order; empty for one without any. */
export function partsOf({ location }: Pick<Entry, "location">): readonly Location[] {
  if (location === undefined) return [];
  return location.before === undefined ? [location] : [...location.before, location];
}

/** Number of bytes that are stored for an entry. */
export function storedLength(entry: Pick<Entry, "location">): number {
  return partsOf(entry).reduce((sum, { length }) => sum + length, 0);
}

/** One file, directory or link of a checkpoint. */
export interface Entry {
  readonly path: string;
  readonly type: EntryType;
  /** Permission bits with setuid, setgid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Whole seconds, floored, and the nanoseconds above them. */
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  /** Files only; 0 for the rest. */
  readonly size: number;
  /** Hex digest of the stored bytes: the whole content, or the extents of a sparse file end to end. Files only, else "". */
  readonly sha256: string;
  /** Symlinks only. */
  readonly target?: string;
  /** Files that share an inode have the same group; unique within a checkpoint. */
  readonly group?: string;
  readonly xattrs?: readonly (readonly [name: string, base64: string])[];
  /** Sparse files: the ranges that hold data; the rest are holes. */
  readonly extents?: readonly (readonly [offset: number, length: number])[];
  /** Files with at least one byte. Hard links of one group all have the same. */
  readonly location?: Location;
}

/** The whole tree of one checkpoint, by path. */
export type Listing = ReadonlyMap<string, Entry>;

/** What was not captured exactly, and why (INV-6). */
export interface Flaw {
  readonly path: string;
  /** skipped: not in the checkpoint. torn: changed while being read. degraded: captured, but not completely. */
  readonly kind: "skipped" | "torn" | "degraded";
  readonly reason: string;
}

export const REASONS = [
  "manual",
  "baseline",
  "departure",
  "crash",
  "scheduled",
  "live",
  "pre-restore",
  "shutdown",
  "stop",
  "import",
  "fork",
] as const;

/** Why a checkpoint was taken. */
export type Reason = (typeof REASONS)[number];

/** Those that a user can give; live points are the pit's own. */
export const COMMAND_REASONS = REASONS.filter((reason) => reason !== "live");

/** The git state of a worktree in a checkpoint. */
export interface GitPosition {
  /** deferred: a live point has no commit. */
  readonly status: "committed" | "unchanged" | "deferred" | "none" | "degraded";
  readonly head: string | null;
  readonly branch: string | null;
  /** The commit of the worktree's full visible state. */
  readonly commit: string | null;
  readonly ref: string | null;
  /** Why there is none, or what is degraded. */
  readonly note: string | null;
}

/** The `lazarus` field of a checkpoint's config blob. Field names are fixed: other tools read them. */
export interface CheckpointMetadata {
  readonly format: 1;
  readonly checkpoint_id: string;
  readonly mission: string;
  readonly parent: string | null;
  readonly reason: Reason;
  readonly message: string | null;
  readonly agent: string | null;
  /** Epoch milliseconds. */
  readonly created_ms: number;
  readonly host: string;
  readonly lazarus_version: string;
  readonly git: GitPosition;
  readonly counts: {
    readonly files: number;
    readonly directories: number;
    readonly others: number;
    /** Size of all files, as a reader sees them. */
    readonly bytes: number;
    /** Paths that this checkpoint stored. */
    readonly changed: number;
    readonly removed: number;
    readonly changed_bytes: number;
    readonly stored_bytes: number;
  };
  readonly flows: readonly FlowPosition[];
  readonly runs: readonly RunPosition[];
  /** How far the agent's conversation is; absent without one. */
  readonly conversation?: ConversationPosition;
  /** How much of the mission's effect history is older than this checkpoint, in bytes. Absent in older checkpoints. */
  readonly effects?: { readonly position: number };
  readonly flaws: readonly Flaw[];
  /** Exclude patterns; a restore never removes a path that they match. */
  readonly excluded: readonly string[];
  /** The writer has checked that the checkpoint can be restored; early versions did not. */
  readonly checked?: true;
}

/** One entry of a vault's index: the checkpoint exists if and only if this does (INV-2). */
export interface CheckpointRef {
  readonly id: string;
  /** Digest of the manifest, or of a live point's record. */
  readonly manifest: string;
  readonly manifestSize: number;
  /** `manifest` is the record of a live point, not an OCI manifest. */
  readonly isRecord?: true;
  readonly createdAtMs: number;
  readonly reason: Reason;
  readonly message: string | null;
  readonly parent: string | null;
  readonly pinned: boolean;
  /** When a drill last proved it restorable; null if never. */
  readonly provenAtMs: number | null;
  /** Set on the safety checkpoint of a restore: the checkpoint that was restored. */
  readonly beforeRestoreOf: string | null;
  /** With `beforeRestoreOf`: the paths that the restore was limited to. Absent when it covered the whole cell. */
  readonly restoredPaths?: readonly string[];
  /** With `beforeRestoreOf`: the conversation was left alone. */
  readonly restoredPart?: "files";
}
