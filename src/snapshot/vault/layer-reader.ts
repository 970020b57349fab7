// Reads bytes out of layers, one member at a time, without inflating the rest. Every file is checked against its digest.
// What a reader needs to know about a layer is plain data, so restore workers read without decoding the layer's table.
import { createHash, hash } from "node:crypto";
import { closeSync } from "node:fs";
import { LazarusError, messageOf } from "../../platform/errors.ts";
import { type Entry, type Location, partsOf } from "../model/entry.ts";
import { type Codec, codecOf } from "./codec.ts";
import {
  damagedLayer,
  type LayerSource,
  openLayerFile,
  readAt,
  readToc,
  VERIFY_HINT,
} from "./layer-table.ts";
import { memberAt, type Toc } from "./toc.ts";

/** Where the members of one layer start, in the file and in the raw tar stream. */
export interface LayerMembers {
  readonly digest: string;
  readonly path: string;
  readonly mediaType: string;
  /** Both arrays have one more element than there are members: the end of the last one. */
  readonly stored: Float64Array;
  readonly raw: Float64Array;
}

export function layerMembers(
  layer: Pick<LayerMembers, "digest" | "path" | "mediaType">,
  { members }: Pick<Toc, "members">,
): LayerMembers {
  const stored = new Float64Array(members.length + 1);
  const raw = new Float64Array(members.length + 1);
  for (const [i, member] of members.entries()) {
    stored[i + 1] = stored[i]! + member.stored;
    raw[i + 1] = raw[i]! + member.raw;
  }
  const { digest, path, mediaType } = layer;
  return { digest, path, mediaType, stored, raw };
}

/** A source of file contents: a vault, or a copy that was verified before. */
export interface FileReader {
  /**
   * Passes the stored bytes of a file to `use`, in order: its content, or the extents of a sparse file end to end.
   * Throws CHECKPOINT_DAMAGED when they do not match the file's digest: before `use` sees them when they are in one
   * member, after the last chunk otherwise.
   */
  read(entry: Entry, use: (chunk: Buffer) => void): void;
}

export interface LayerReader extends FileReader, Disposable {
  /** Opens every layer file now, so that a prune that unlinks one does not interrupt a reader. */
  openAll(): void;
  /** The raw tar bytes [at, at + length) of a layer. */
  readRaw(digest: string, at: number, length: number, use: (chunk: Buffer) => void): void;
  /** One member in its stored form. */
  readMember(digest: string, index: number): Buffer;
}

export function createLayerReader(layers: readonly LayerMembers[]): LayerReader {
  const byDigest = new Map(layers.map((layer) => [layer.digest, layer]));
  const descriptors = new Map<string, number>();
  // One member for all layers: callers read in the order in which the bytes are stored.
  let cached: { layer: LayerMembers; index: number; bytes: Buffer } | undefined;

  const open = (layer: LayerMembers): number => {
    const known = descriptors.get(layer.digest);
    if (known !== undefined) return known;
    const fd = openLayerFile(layer.path, layer.digest);
    descriptors.set(layer.digest, fd);
    return fd;
  };
  const readStored = (layer: LayerMembers, index: number): Buffer =>
    readAt(open(layer), layer.stored[index]!, layer.stored[index + 1]! - layer.stored[index]!);
  const inflate = (layer: LayerMembers, index: number): Buffer => {
    if (cached?.layer === layer && cached.index === index) return cached.bytes;
    const bytes = inflateMember(layer, index, readStored(layer, index));
    cached = { layer, index, bytes };
    return bytes;
  };
  const readRaw = (layer: LayerMembers, at: number, length: number, use: (chunk: Buffer) => void) => {
    const end = at + length;
    if (end > layer.raw.at(-1)!) throw damagedLayer(layer.digest, "a file extends beyond its end");
    let index = memberAt(layer.raw, at);
    for (let from = at; from < end; index += 1) {
      const start = layer.raw[index]!;
      const chunk = inflate(layer, index).subarray(
        from - start,
        Math.min(end, layer.raw[index + 1]!) - start,
      );
      if (chunk.length > 0) use(chunk);
      from += chunk.length;
    }
  };

  return {
    openAll: () => layers.forEach(open),
    readRaw: (digest, at, length, use) => readRaw(byDigest.get(digest)!, at, length, use),
    readMember: (digest, index) => readStored(byDigest.get(digest)!, index),
    read(entry, use) {
      const { location } = entry;
      const layer = location && byDigest.get(location.layer)!;
      const chunks = (to: (chunk: Buffer) => void) => {
        for (const part of partsOf(entry)) readRaw(byDigest.get(part.layer)!, part.at, part.length, to);
      };
      if (layer !== undefined && isInOneMember(layer, location!)) {
        chunks((chunk) => {
          if (hash("sha256", chunk, "hex") !== entry.sha256) throw damagedFile(entry);
          use(chunk);
        });
        return;
      }
      const digest = createHash("sha256");
      chunks((chunk) => {
        digest.update(chunk);
        use(chunk);
      });
      if (digest.digest("hex") !== entry.sha256) throw damagedFile(entry);
    },
    [Symbol.dispose]() {
      for (const fd of descriptors.values()) closeSync(fd);
      descriptors.clear();
    },
  };
}

function isInOneMember({ raw }: LayerMembers, { at, length, before }: Location): boolean {
  return before === undefined && length > 0 && raw[memberAt(raw, at) + 1]! >= at + length;
}

function inflateMember(layer: LayerMembers, index: number, stored: Buffer): Buffer {
  const rawLength = layer.raw[index + 1]! - layer.raw[index]!;
  let raw: Buffer;
  try {
    raw = codecOf(layer.mediaType)!.decompress(stored, rawLength);
  } catch (error) {
    throw damagedLayer(layer.digest, `member ${index + 1} cannot be decompressed (${messageOf(error)})`);
  }
  if (raw.length === rawLength) return raw;
  throw damagedLayer(
    layer.digest,
    `member ${index + 1} inflates to ${raw.length} bytes instead of ${rawLength}`,
  );
}

function damagedFile({ path, location }: Entry): LazarusError {
  return new LazarusError(
    "CHECKPOINT_DAMAGED",
    `${JSON.stringify(path)} does not match its digest in the vault`,
    { hint: VERIFY_HINT, details: { path, layer: location?.layer } },
  );
}

/** One layer with its table. */
export interface Layer extends Disposable {
  readonly digest: string;
  readonly codec: Codec;
  readonly toc: Toc;
  /** Bytes of the layer file that hold members; the table follows. */
  readonly membersLength: number;
  read(at: number, length: number, use: (chunk: Buffer) => void): void;
  readMember(index: number): Buffer;
}

export function openLayer(source: LayerSource): Layer {
  const { digest, codec } = source;
  const toc = readToc(source);
  const members = layerMembers({ ...source, mediaType: codec.mediaType }, toc);
  const reader = createLayerReader([members]);
  reader.openAll();
  return {
    digest,
    codec,
    toc,
    membersLength: members.stored.at(-1)!,
    read: (at, length, use) => reader.readRaw(digest, at, length, use),
    readMember: (index) => reader.readMember(digest, index),
    [Symbol.dispose]: () => reader[Symbol.dispose](),
  };
}
