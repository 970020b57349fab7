// The interface between the saver and a database: rows of bytes, implemented for SQLite and PostgreSQL.

/** One checkpoint without its channel values. */
export interface CheckpointRow {
  readonly thread: string;
  readonly ns: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly body: Uint8Array;
  readonly metadata: Uint8Array;
}

/** One version of one channel, as a delta against an earlier one. */
export interface BlobRow {
  readonly channel: string;
  readonly version: string;
  /** The version that the delta is against; null for a whole value. */
  readonly base: string | null;
  /** Number of earlier links in its chain. */
  readonly depth: number;
  readonly keep: number;
  readonly tail: number;
  /** Type tag of the serializer; `empty` for a channel without a value. */
  readonly type: string;
  readonly body: Uint8Array;
}

/** A write of a task within a step. */
export interface WriteRow {
  readonly taskId: string;
  /** Negative for LangGraph's special writes, which are replaced; other writes are kept as first written. */
  readonly index: number;
  readonly channel: string;
  readonly type: string;
  readonly body: Uint8Array;
}

/** Filters for checkpoints; default all. */
export interface CheckpointQuery {
  readonly thread?: string | undefined;
  readonly ns?: string | undefined;
  readonly id?: string | undefined;
  readonly beforeId?: string | undefined;
  readonly limit?: number | undefined;
}

/** A database of checkpoints. A resolved write is durable. */
export interface SaverRows extends AsyncDisposable {
  /** Stores checkpoint and blobs in one transaction. Existing blobs are not changed. */
  put(row: CheckpointRow, blobs: readonly BlobRow[]): Promise<void>;
  putWrites(thread: string, ns: string, checkpointId: string, writes: readonly WriteRow[]): Promise<void>;
  /** One checkpoint, default the newest. */
  find(thread: string, ns: string, id: string | undefined): Promise<CheckpointRow | undefined>;
  /** Newest first. */
  list(query: CheckpointQuery): Promise<CheckpointRow[]>;
  /** The chain of a channel's version, oldest link first; empty when there is none. */
  chain(thread: string, ns: string, channel: string, version: string): Promise<BlobRow[]>;
  /** In the order of task and index. */
  writes(thread: string, ns: string, checkpointId: string): Promise<WriteRow[]>;
  deleteThread(thread: string): Promise<void>;
  sizeBytes(): Promise<number>;
}
