// Unpacks what is imported into a private directory: an archive, an image of an OCI layout, or a live point of a copied vault. All
// of it is untrusted; unpack.ts checks every entry, and the meter of source.ts the amount.
import { statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CarriedEffects } from "../model/carried-effects.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { fromTarName } from "../tar/header.ts";
import { TarError, TarReader, type TarSink } from "../tar/read.ts";
import { openContents } from "../vault/contents.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { openVault, type Vault } from "../vault/vault.ts";
import { writeCheckpointTar } from "./checkpoint-tar.ts";
import { collectEffectComments } from "./effect-comments.ts";
import {
  type ArchiveLimits,
  createMeter,
  DEFAULT_LIMITS,
  type Image,
  isOciLayout,
  type LivePoint,
  openImage,
  readArchive,
  readImageLayer,
} from "./source.ts";
import { createUnpacker, type Unpacker, type UnpackOptions } from "./unpack.ts";

export interface SourceOptions {
  /** An archive, or a directory that is an OCI layout. */
  readonly source: string;
  /** The image of a layout; default: the last one. */
  readonly tag?: string | undefined;
  readonly limits?: Partial<ArchiveLimits>;
  /** Keep setuid bits and privileged xattrs. */
  readonly trusted?: boolean;
  /** Set the owners that the archive names. */
  readonly owners: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface Unpacked {
  readonly unpacker: Unpacker;
  /** The effect history in an archive, if it has one. */
  readonly comments: CarriedEffects | undefined;
  /** Which checkpoint of a layout it was. */
  readonly point: Point | undefined;
}

interface Point {
  readonly tag: string;
  /** In the effect history of the layout. */
  readonly position: number;
}

type UnpackContext = Pick<MissionContext, "machine" | "onProgress">;

/** Unpacks an archive or an image into `tree`. Does not set the modes of directories. */
export async function unpackSource(
  context: UnpackContext,
  tree: string,
  options: SourceOptions,
): Promise<Unpacked> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const base: UnpackOptions = {
    owners: options.owners,
    trusted: options.trusted ?? false,
    maxEntries: limits.maxEntries,
  };
  const unpacker = createUnpacker(tree, base);
  const image = isOciLayout(options.source) ? openImage(options.source, options.tag) : undefined;
  const work = { context, unpacker, base, limits, options };
  const found =
    image === undefined
      ? { comments: await unpackArchive(work), point: undefined }
      : {
          comments: undefined,
          point: "isLivePoint" in image ? await unpackLivePoint(work, image) : await unpackImage(work, image),
        };
  if (unpacker.entries === 0) throw new LazarusError("LAYER_DAMAGED", `${options.source} is empty`);
  unpacker.finish();
  return { unpacker, ...found };
}

interface Unpacking {
  readonly context: UnpackContext;
  readonly unpacker: Unpacker;
  readonly base: UnpackOptions;
  readonly limits: ArchiveLimits;
  readonly options: SourceOptions;
}

function meterOf({ context, limits }: Unpacking, total: number) {
  return createMeter(limits, (done) =>
    context.onProgress({ phase: "unpacking", done, total, unit: "bytes" }),
  );
}

async function unpackArchive(work: Unpacking): Promise<CarriedEffects | undefined> {
  const { source, signal } = work.options;
  const found = statSync(source);
  if (found.isDirectory()) throw notALayout(source);
  const meter = meterOf(work, found.size);
  const comments = collectEffectComments();
  const sink = { ...sinkOf(work.unpacker), comment: comments.add };
  await feed(sink, (use) => readArchive(source, meter, use, { signal }));
  return comments.take();
}

async function unpackImage(work: Unpacking, image: Image): Promise<Point> {
  const { unpacker, base } = work;
  const { signal } = work.options;
  const meter = meterOf(
    work,
    image.layers.reduce((sum, { size }) => sum + size, 0),
  );
  let compressedBefore = 0;
  for (const layer of image.layers) {
    unpacker.withOptions({ ...base, layer: { unescape: image.isOurs ? fromTarName : (name) => name } });
    await feed(sinkOf(unpacker), (use) => readImageLayer(layer, meter, use, { compressedBefore, signal }));
    compressedBefore += layer.size;
  }
  return { tag: image.tag, position: image.effectsPosition };
}

/** Its files may continue those of layers below, so they are read as a whole, and unpacked like an archive. */
async function unpackLivePoint(work: Unpacking, { tag }: LivePoint): Promise<Point> {
  const { source } = work.options;
  const vault = openVault(work.context.machine, dirname(source), basename(source));
  try {
    return await unpackCheckpoint(work, vault, vault.list().find(({ id }) => id === tag)!);
  } catch (error) {
    // The hints of a mission's own vault name commands that do not know this one.
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    throw error.with({ hint: `copy ${source} again; nothing was imported` });
  }
}

async function unpackCheckpoint(work: Unpacking, vault: Vault, ref: CheckpointRef): Promise<Point> {
  const { signal } = work.options;
  const checkpoint = readCheckpoint(vault, ref);
  const compressed = checkpoint.layers.reduce((sum, { size }) => sum + size, 0);
  const meter = meterOf(work, compressed);
  using contents = openContents(vault, checkpoint.layers);
  await feed(sinkOf(work.unpacker), async (use) => {
    const add = (bytes: Uint8Array) => {
      meter.inflated(bytes.length, compressed);
      use(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
    };
    await writeCheckpointTar(contents, add, { what: "import", signal, onProgress() {} });
  });
  return { tag: ref.id, position: checkpoint.metadata.effects?.position ?? 0 };
}

/** Without comments: those of a layer are not from an export. */
function sinkOf(unpacker: Unpacker): TarSink {
  return {
    entry: (entry) => unpacker.entry(entry),
    data: (chunk) => unpacker.data(chunk),
    close: () => unpacker.close(),
  };
}

async function feed(sink: TarSink, read: (use: (chunk: Buffer) => void) => Promise<void>): Promise<void> {
  const reader = new TarReader(sink);
  try {
    await read((chunk) => reader.push(chunk));
    reader.end();
  } catch (error) {
    if (!(error instanceof TarError)) throw error;
    throw new LazarusError("LAYER_DAMAGED", `the archive cannot be read: ${error.message}`, {
      hint: "check it with tar tvf; nothing was imported",
      cause: error,
    });
  }
}

function notALayout(source: string): LazarusError {
  return new LazarusError("NOT_FOUND", `${source} is a directory, but not an OCI layout`, {
    hint: `tar -C ${source} -czf cell.tar.gz . && lazarus import cell.tar.gz --mission NAME`,
  });
}
