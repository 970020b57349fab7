// The seam between the saver and a database: rows of bytes. SQLite and PostgreSQL implement it; the saver above knows
// LangGraph and nothing of SQL.

/** One checkpoint without its channel values. */
export interface CheckpointRow {
  readonly thread: string;
  readonly ns: string;
  readonly id: string;
  readonly parentId: string | null;
  readonly body: Uint8Array;
  readonly metadata: Uint8Array;
}

/** One version of one channel, told in terms of an earlier one. */
export interface BlobRow {
  readonly channel: string;
  readonly version: string;
  /** The version that this one is told in terms of; null for a whole value. */
  readonly base: string | null;
  /** Links before this one. */
  readonly depth: number;
  readonly keep: number;
  readonly tail: number;
  /** Of the serializer; `empty` for a channel without a value. */
  readonly type: string;
  readonly body: Uint8Array;
}

/** What a task wrote before its step was over. */
export interface WriteRow {
  readonly taskId: string;
  /** Negative for LangGraph's special writes, which replace each other; others count once. */
  readonly index: number;
  readonly channel: string;
  readonly type: string;
  readonly body: Uint8Array;
}

/** Which checkpoints; nothing set means all. */
export interface CheckpointQuery {
  readonly thread?: string | undefined;
  readonly ns?: string | undefined;
  readonly id?: string | undefined;
  readonly beforeId?: string | undefined;
  readonly limit?: number | undefined;
}

/** A database of checkpoints. What a promise resolved is durable. */
export interface SaverRows extends AsyncDisposable {
  /** Checkpoint and blobs in one transaction. Blobs that are there already stay as they are. */
  put(row: CheckpointRow, blobs: readonly BlobRow[]): Promise<void>;
  putWrites(thread: string, ns: string, checkpointId: string, writes: readonly WriteRow[]): Promise<void>;
  /** One checkpoint; the newest when no id is given. */
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
