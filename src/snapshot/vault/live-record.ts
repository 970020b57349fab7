// The record of a live point: what it adds to the checkpoint before it. A manifest lists every layer and a
// config all metadata: 8 KB, even for a point with one small change. A record takes 0.7 KB. It names the document that it
// builds on by digest, and chains are short. Pure: encodes and decodes, reads nothing.
import type { JsonObject } from "../../platform/json-file.ts";
import type { CheckpointMetadata } from "../model/entry.ts";
import { codecOf } from "./codec.ts";

/** A layer as a manifest or a record describes it. */
export interface LayerRef {
  readonly digest: string;
  readonly size: number;
  readonly mediaType: string;
  /** Digest of the uncompressed tar stream. */
  readonly diffId: string;
  /** Hex digest of the hidden table of contents. */
  readonly tocSha256: string;
  /** Inflated length of the table; undefined for layers of older versions. */
  readonly tocBytes?: number | undefined;
  /** Some of its files continue files of the layers below it. Only in records, because other tools read manifests. */
  readonly isContinued?: true | undefined;
}

export interface LiveRecord {
  /** The checkpoint that this one builds on; undefined when the record is complete. */
  readonly base?: { readonly digest: string; readonly keptLayers: number };
  /** On top of the layers kept from the base. */
  readonly layers: readonly LayerRef[];
  /** The fields that differ from the base. */
  readonly metadata: Partial<CheckpointMetadata>;
}

/** What a live point was built on. */
export interface RecordBase {
  readonly digest: string;
  readonly metadata: CheckpointMetadata;
  readonly layers: readonly LayerRef[];
}

const VERSION_KEY = "lazarus-live-point";
const VERSION = 1;

/** The shortest record of a point on top of `base`; without one, a complete record. */
export function planRecord(
  metadata: CheckpointMetadata,
  layers: readonly LayerRef[],
  base: RecordBase | undefined,
): LiveRecord {
  // A record can set fields, not remove them.
  if (base === undefined || Object.keys(base.metadata).some((key) => !(key in metadata)))
    return { layers, metadata };
  let keptLayers = 0;
  while (keptLayers < layers.length && layers[keptLayers]!.digest === base.layers[keptLayers]?.digest)
    keptLayers += 1;
  const before = base.metadata as unknown as JsonObject;
  const changed = Object.entries(metadata).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key]),
  );
  return {
    base: { digest: base.digest, keptLayers },
    layers: layers.slice(keptLayers),
    metadata: Object.fromEntries(changed),
  };
}

export function encodeRecord({ base, layers, metadata }: LiveRecord): Buffer {
  const document = {
    [VERSION_KEY]: VERSION,
    ...(base !== undefined && { base: base.digest, kept_layers: base.keptLayers }),
    layers: layers.map(({ mediaType, digest, size, diffId, tocSha256, tocBytes, isContinued }) => ({
      mediaType,
      digest,
      size,
      diff_id: diffId,
      toc_sha256: tocSha256,
      toc_bytes: tocBytes,
      continued: isContinued,
    })),
    lazarus: metadata,
  };
  return Buffer.from(JSON.stringify(document));
}

export function isRecordDocument(document: JsonObject): boolean {
  return VERSION_KEY in document;
}

export type Decoded = { readonly record: LiveRecord } | { readonly problem: string; readonly isNewer?: true };

/** The record, or the problem with a document that is not a record of this version. */
export function decodeRecord(document: JsonObject): Decoded {
  const { [VERSION_KEY]: version, base, kept_layers: keptLayers, layers, lazarus } = document;
  if (version !== VERSION) return { problem: `its record has version ${String(version)}`, isNewer: true };
  if (!Array.isArray(layers)) return { problem: "its record lists no layers" };
  if (typeof lazarus !== "object" || lazarus === null) return { problem: "its record has no metadata" };
  const decoded = layers.map((each) => toLayerRef(each));
  const bad = decoded.indexOf(undefined);
  if (bad >= 0) return { problem: `layer ${bad + 1} of its record is not a layer of Lazarus` };
  const own = { layers: decoded as LayerRef[], metadata: lazarus as Partial<CheckpointMetadata> };
  if (base === undefined) return { record: own };
  if (typeof base !== "string" || !isCount(keptLayers))
    return { problem: "its record names an invalid base" };
  return { record: { ...own, base: { digest: base, keptLayers } } };
}

function toLayerRef(value: unknown): LayerRef | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { digest, size, mediaType, diff_id, toc_sha256, toc_bytes, continued } = value as JsonObject;
  return checkLayerRef({
    digest,
    size,
    mediaType,
    diffId: diff_id,
    tocSha256: toc_sha256,
    tocBytes: toc_bytes,
    ...(continued === true && { isContinued: true }),
  });
}

/** The layer, if every field has the right type. */
export function checkLayerRef(layer: { readonly [key in keyof LayerRef]: unknown }): LayerRef | undefined {
  const { digest, size, mediaType, diffId, tocSha256, tocBytes } = layer;
  const isValid =
    typeof digest === "string" &&
    typeof size === "number" &&
    typeof mediaType === "string" &&
    typeof diffId === "string" &&
    typeof tocSha256 === "string" &&
    (tocBytes === undefined || isCount(tocBytes)) &&
    codecOf(mediaType) !== undefined;
  return isValid ? (layer as LayerRef) : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
