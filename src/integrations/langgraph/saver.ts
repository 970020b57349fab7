// A checkpoint saver for LangGraph with linear growth: each version of a channel is stored as a delta against the version
// before. Versions have a random part, so that two branches forked from one checkpoint never share a value by accident.
// A put is one transaction and survives SIGKILL and power loss once it has returned.
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  getCheckpointId,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type IdSource, randomText } from "../../platform/ids.ts";
import { createBlobCache } from "./blob-cache.ts";
import { diffPieces, joinLinks } from "./delta.ts";
import { createListSerializer, createPlainSerializer, type ListSerializer } from "./list-serializer.ts";
import { damagedGraph, pack, unpack } from "./pack.ts";
import type { BlobRow, CheckpointRow, SaverRows } from "./rows.ts";

/** After this many deltas a whole value is stored, so that loading stays bounded. */
const LONGEST_CHAIN = 1000;
/** Zero-padded, since versions are compared as strings. */
const VERSION_DIGITS = 10;
const VERSION_RANDOM = 8;
const EMPTY = "empty";
/** A version made by `getNextVersion`, which is unique. Only then does the cached value equal the stored one. */
const UNIQUE_VERSION = /^\d{10,}\.[0-9a-z]{8}$/;

interface ParentCheckpoint {
  readonly thread: string;
  readonly ns: string;
  readonly parentId: string | undefined;
}

/** A LangGraph checkpoint saver; create it with `openSqliteSaver` or `openPostgresSaver`. */
export class LazarusSaver extends BaseCheckpointSaver implements AsyncDisposable {
  readonly #rows: SaverRows;
  readonly #ids: IdSource;
  readonly #cache = createBlobCache();
  readonly #lists: ListSerializer;

  constructor(rows: SaverRows, ids: IdSource, serde?: SerializerProtocol) {
    super(serde);
    this.#rows = rows;
    this.#ids = ids;
    this.#lists = (serde === undefined ? createListSerializer : createPlainSerializer)(this.serde);
  }

  /** The next version, with a random part, so that two forks never get the same one. */
  override getNextVersion(current: number | undefined): number {
    const count = current === undefined ? 0 : Number.parseInt(String(current), 10);
    const text = `${String(count + 1).padStart(VERSION_DIGITS, "0")}.${randomText(this.#ids, VERSION_RANDOM)}`;
    // LangGraph allows string versions, but types them as numbers.
    return text as unknown as number;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const thread = config.configurable?.thread_id;
    if (thread === undefined) return undefined;
    const ns: string = config.configurable?.checkpoint_ns ?? "";
    const row = await this.#rows.find(String(thread), ns, getCheckpointId(config) || undefined);
    return row === undefined ? undefined : this.#tuple(row);
  }

  override async *list(
    config: RunnableConfig,
    options: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { limit, before, filter } = options;
    const wanted = Object.entries(filter ?? {});
    const rows = await this.#rows.list({
      thread: config.configurable?.thread_id,
      ns: config.configurable?.checkpoint_ns,
      id: config.configurable?.checkpoint_id || undefined,
      beforeId: before?.configurable?.checkpoint_id,
      limit: wanted.length === 0 ? limit : undefined,
    });
    let left = limit ?? Number.POSITIVE_INFINITY;
    for (const row of rows) {
      if (left <= 0) return;
      if (wanted.length > 0) {
        const metadata = await this.#load<Record<string, unknown>>("json", row.metadata);
        if (!wanted.every(([key, value]) => sameJson(metadata[key], value))) continue;
      }
      left -= 1;
      yield await this.#tuple(row);
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const thread = threadOf(config, "checkpoint");
    const ns: string = config.configurable?.checkpoint_ns ?? "";
    const parentId: string | undefined = config.configurable?.checkpoint_id;
    const { channel_values: values, ...body } = checkpoint;
    const blobs: BlobRow[] = [];
    for (const [channel, version] of Object.entries(newVersions)) {
      blobs.push(await this.#blobRow({ thread, ns, parentId }, channel, String(version), values));
    }
    const row: CheckpointRow = {
      ...{ thread, ns, id: checkpoint.id, parentId: parentId ?? null },
      body: await this.#dump(body),
      metadata: await this.#dump(metadata),
    };
    crashPoint("langgraph.put.before");
    await this.#rows.put(row, blobs);
    crashPoint("langgraph.put.after");
    this.#cache.putVersions(thread, ns, checkpoint.id, checkpoint.channel_versions);
    return { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: checkpoint.id } };
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const thread = threadOf(config, "writes");
    const ns: string = config.configurable?.checkpoint_ns ?? "";
    const checkpointId: string | undefined = config.configurable?.checkpoint_id;
    if (checkpointId === undefined) throw missing("writes", "checkpoint_id");
    const rows = await Promise.all(
      writes.map(async ([channel, value], i) => {
        const [type, bytes] = await this.serde.dumpsTyped(value);
        return { taskId, index: WRITES_IDX_MAP[channel] ?? i, channel, type, body: pack(bytes) };
      }),
    );
    crashPoint("langgraph.writes.before");
    await this.#rows.putWrites(thread, ns, checkpointId, rows);
    crashPoint("langgraph.writes.after");
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#rows.deleteThread(threadId);
    this.#cache.forgetThread(threadId);
  }

  /** Bytes on disk. */
  sizeBytes(): Promise<number> {
    return this.#rows.sizeBytes();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#rows[Symbol.asyncDispose]());
  }

  async #dump(value: unknown): Promise<Uint8Array> {
    return pack((await this.serde.dumpsTyped(value))[1]);
  }

  async #load<T>(type: string, bytes: Uint8Array): Promise<T> {
    return this.#parse<T>(type, unpack(bytes));
  }

  async #parse<T>(type: string, bytes: Uint8Array): Promise<T> {
    try {
      return (await this.serde.loadsTyped(type, bytes)) as T;
    } catch (error) {
      throw damagedGraph(`its serializer cannot read a value of type ${type}`, error);
    }
  }

  /** A channel's new value, as a delta against the parent checkpoint's value if that is shorter. */
  async #blobRow(
    { thread, ns, parentId }: ParentCheckpoint,
    channel: string,
    version: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<BlobRow> {
    const whole = { channel, version, base: null, depth: 0, keep: 0, tail: 0 };
    if (!Object.hasOwn(values, channel)) return { ...whole, type: EMPTY, body: new Uint8Array() };
    const { type, pieces } = await this.#lists.dumpPieces(values[channel]);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const base = parentId === undefined ? undefined : await this.#base(thread, ns, parentId, channel);
    const value = { version, type, pieces, length, depth: 0 };
    if (!UNIQUE_VERSION.test(version)) return { ...whole, type, body: pack(Buffer.concat(pieces)) };
    if (base !== undefined && base.type === type && base.depth < LONGEST_CHAIN) {
      const { keep, tail, middle } = diffPieces(base.pieces, pieces);
      if (middle.length < length / 2) {
        const depth = base.depth + 1;
        this.#cache.put(thread, ns, channel, { ...value, depth });
        return { channel, version, base: base.version, depth, keep, tail, type, body: pack(middle) };
      }
    }
    this.#cache.put(thread, ns, channel, value);
    return { ...whole, type, body: pack(Buffer.concat(pieces)) };
  }

  /** The value of a channel in a checkpoint, from the cache or the database. */
  async #base(thread: string, ns: string, checkpointId: string, channel: string) {
    const version = this.#cache.versionOf(thread, ns, checkpointId, channel);
    if (version !== undefined) return this.#value(thread, ns, channel, version);
    const row = await this.#rows.find(thread, ns, checkpointId);
    if (row === undefined) return undefined;
    const { channel_versions: versions } = await this.#load<Checkpoint>("json", row.body);
    this.#cache.putVersions(thread, ns, checkpointId, versions ?? {});
    const found = versions?.[channel];
    return found === undefined ? undefined : this.#value(thread, ns, channel, String(found));
  }

  async #value(thread: string, ns: string, channel: string, version: string) {
    const known = this.#cache.get(thread, ns, channel, version);
    if (known !== undefined) return known;
    const chain = await this.#rows.chain(thread, ns, channel, version);
    const last = chain.at(-1);
    if (last === undefined || last.type === EMPTY) return undefined;
    if (chain[0]!.base !== null || chain.length !== last.depth + 1) {
      const where = `thread ${thread}, channel ${channel}, version ${version}`;
      throw damagedGraph(`${where} has ${chain.length} of its ${last.depth + 1} parts`);
    }
    const bytes = joinLinks(chain.map(({ keep, tail, body }) => ({ keep, tail, body: unpack(body) })));
    const value = { version, type: last.type, pieces: [bytes], length: bytes.length, depth: last.depth };
    if (UNIQUE_VERSION.test(version)) this.#cache.put(thread, ns, channel, value);
    return value;
  }

  async #tuple(row: CheckpointRow): Promise<CheckpointTuple> {
    const { thread, ns, id, parentId } = row;
    const body = await this.#load<Omit<Checkpoint, "channel_values">>("json", row.body);
    const values: Record<string, unknown> = {};
    for (const [channel, version] of Object.entries(body.channel_versions ?? {})) {
      const value = await this.#value(thread, ns, channel, String(version));
      if (value !== undefined) values[channel] = await this.#parse(value.type, Buffer.concat(value.pieces));
    }
    this.#cache.putVersions(thread, ns, id, body.channel_versions ?? {});
    const checkpoint: Checkpoint = { ...body, channel_values: values };
    if (checkpoint.v < 4 && parentId !== null) await this.#migrateSends(checkpoint, thread, ns, parentId);
    const writes = await this.#rows.writes(thread, ns, id);
    return {
      config: { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } },
      checkpoint,
      metadata: await this.#load<CheckpointMetadata>("json", row.metadata),
      pendingWrites: await Promise.all(
        writes.map(async ({ taskId, channel, type, body: bytes }) => {
          return [taskId, channel, await this.#load(type, bytes)] as [string, string, unknown];
        }),
      ),
      ...(parentId === null
        ? {}
        : {
            parentConfig: { configurable: { thread_id: thread, checkpoint_ns: ns, checkpoint_id: parentId } },
          }),
    };
  }

  /** Checkpoints before format 4 stored sends among the writes of their parent. */
  async #migrateSends(checkpoint: Checkpoint, thread: string, ns: string, parentId: string): Promise<void> {
    const sends = (await this.#rows.writes(thread, ns, parentId)).filter(({ channel }) => channel === TASKS);
    checkpoint.channel_values[TASKS] = await Promise.all(
      sends.map(({ type, body }) => this.#load(type, body)),
    );
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

function threadOf(config: RunnableConfig, what: string): string {
  const thread: unknown = config.configurable?.thread_id;
  if (thread === undefined || thread === null) throw missing(what, "thread_id");
  return String(thread);
}

function missing(what: string, field: string): LazarusError {
  return new LazarusError("USAGE", `${what} cannot be stored: the config has no configurable.${field}`, {
    hint: 'graph.invoke(input, { configurable: { thread_id: "my-thread" } })',
  });
}

function sameJson(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}
