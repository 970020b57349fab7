// Stores and reads the documents of a checkpoint: manifest and config, or the record of a live point (live-record.ts). The
// config holds the metadata under `lazarus`; everything else is plain OCI. Blobs are untrusted: one with the wrong shape is
// an error that names it.
import { LazarusError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/json-file.ts";
import type { CheckpointMetadata, CheckpointRef } from "../model/entry.ts";
import { codecOf, isLocalOnly } from "./codec.ts";
import { MANIFEST_TYPE } from "./index-json.ts";
import { type Layer, openLayer } from "./layer-reader.ts";
import type { LayerSource } from "./layer-table.ts";
import {
  checkLayerRef,
  decodeRecord,
  encodeRecord,
  isRecordDocument,
  type LayerRef,
  type LiveRecord,
  planRecord,
} from "./live-record.ts";
import type { Vault } from "./vault.ts";

export type { LayerRef };

/** A checkpoint as read from its manifest or record. */
export interface Checkpoint {
  readonly ref: CheckpointRef;
  readonly metadata: CheckpointMetadata;
  /** Lowest first. */
  readonly layers: readonly LayerRef[];
  /** Digests of the blobs that describe it: manifest and config, or a record and everything that it builds on. */
  readonly documents: readonly string[];
  /** Whether the first of them is a record. */
  readonly isRecord: boolean;
}

const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const TOC_ANNOTATION = "vnd.lazarus.toc.sha256";
const TOC_BYTES_ANNOTATION = "vnd.lazarus.toc.bytes";
const LOCAL_ANNOTATION = "vnd.lazarus.local-only";
const FORMAT = 1;

/** What an index entry says about the documents of its checkpoint. */
export type StoredAs = Pick<CheckpointRef, "manifest" | "manifestSize" | "isRecord">;

export function storedAs({ manifest, manifestSize, isRecord }: StoredAs): StoredAs {
  return { manifest, manifestSize, ...(isRecord && { isRecord }) };
}

/** Stores config and manifest; the layers must already be in the vault, and none may be continued. */
export function putManifest(
  vault: Vault,
  { metadata, layers }: Pick<Checkpoint, "metadata" | "layers">,
): StoredAs {
  if (layers.some(({ isContinued }) => isContinued)) throw new Error("a manifest has no continued layers");
  const created = new Date(metadata.created_ms).toISOString();
  const config = vault.put(
    encode({
      created,
      architecture: ARCHITECTURES[process.arch] ?? process.arch,
      os: process.platform === "darwin" ? "darwin" : "linux",
      config: {},
      rootfs: { type: "layers", diff_ids: layers.map((layer) => layer.diffId) },
      lazarus: metadata,
    }),
  );
  const { digest, size } = vault.put(
    encode({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, ...config },
      layers: layers.map(({ mediaType, digest, size, tocSha256, tocBytes }) => ({
        mediaType,
        digest,
        size,
        annotations: {
          [TOC_ANNOTATION]: tocSha256,
          ...(tocBytes === undefined ? {} : { [TOC_BYTES_ANNOTATION]: String(tocBytes) }),
          ...(isLocalOnly(mediaType) ? { [LOCAL_ANNOTATION]: "true" } : {}),
        },
      })),
    }),
  );
  return { manifest: digest, manifestSize: size };
}

/** After this many records comes a complete one, so that reading a point needs few blobs and damage affects few points. */
const MAX_CHAIN = 24;

/** Stores the record of a live point, on top of the newest checkpoint; the layers must already be in the vault. */
export function putRecord(
  vault: Vault,
  { metadata, layers }: Pick<Checkpoint, "metadata" | "layers">,
  head: Checkpoint,
): StoredAs {
  const base = head.documents.length < MAX_CHAIN ? { ...head, digest: head.ref.manifest } : undefined;
  const { digest, size } = vault.put(encodeRecord(planRecord(metadata, layers, base)));
  return { manifest: digest, manifestSize: size, isRecord: true };
}

/** Reads the documents of a checkpoint. Does not open its layers. */
export function readCheckpoint(vault: Vault, ref: CheckpointRef): Checkpoint {
  const newestFirst: LiveRecord[] = [];
  const documents: string[] = [];
  for (let digest: string | undefined = ref.manifest; ; ) {
    documents.push(digest);
    const document = readDocument(vault, ref, digest);
    if (!isRecordDocument(document)) {
      const { config, ...whole } = readManifest(vault, ref, document);
      return build(vault, ref, whole, newestFirst, [...documents, config]);
    }
    const decoded = decodeRecord(document);
    if ("problem" in decoded)
      throw decoded.isNewer ? newer(ref, decoded.problem) : damaged(vault, ref, decoded.problem);
    const { record } = decoded;
    newestFirst.push(record);
    digest = record.base?.digest;
    if (digest === undefined) return build(vault, ref, { metadata: {}, layers: [] }, newestFirst, documents);
    if (documents.length > MAX_CHAIN) throw damaged(vault, ref, "it builds on too many records");
  }
}

type Described = Pick<Checkpoint, "layers"> & { readonly metadata: Partial<CheckpointMetadata> };

/** Applies the records to what they build on. */
function build(
  vault: Vault,
  ref: CheckpointRef,
  lowest: Described,
  newestFirst: readonly LiveRecord[],
  documents: readonly string[],
): Checkpoint {
  let { metadata, layers } = lowest;
  for (const record of newestFirst.toReversed()) {
    const kept = record.base?.keptLayers ?? 0;
    if (kept > layers.length)
      throw damaged(vault, ref, "its record keeps layers that its base does not have");
    metadata = { ...metadata, ...record.metadata };
    layers = [...layers.slice(0, kept), ...record.layers];
  }
  if (metadata.format === undefined) throw damaged(vault, ref, "it has no Lazarus metadata");
  if (metadata.format !== FORMAT) throw newer(ref, `it has format ${metadata.format}`);
  for (const list of ["flaws", "excluded", "flows", "runs"] as const)
    if (!Array.isArray(metadata[list])) throw damaged(vault, ref, `its metadata has no list of ${list}`);
  const isRecord = newestFirst.length > 0;
  return { ref, metadata: metadata as CheckpointMetadata, layers, documents, isRecord };
}

function readManifest(
  vault: Vault,
  ref: CheckpointRef,
  manifest: JsonObject,
): Described & { config: string } {
  const configDigest = String(asObject(manifest.config).digest);
  const config = readDocument(vault, ref, configDigest);
  const metadata = asObject(config.lazarus) as unknown as Partial<CheckpointMetadata>;
  if (!Array.isArray(manifest.layers)) throw damaged(vault, ref, "it has no Lazarus metadata");
  const diffIds = asObject(config.rootfs).diff_ids;
  const layers = manifest.layers.map((each: unknown, i): LayerRef => {
    const { digest, size, mediaType, annotations } = asObject(each);
    const { [TOC_ANNOTATION]: tocSha256, [TOC_BYTES_ANNOTATION]: recorded } = asObject(annotations);
    const tocBytes = recorded === undefined ? undefined : Number(recorded);
    const diffId: unknown = Array.isArray(diffIds) ? diffIds[i] : undefined;
    const layer = checkLayerRef({ digest, size, mediaType, diffId, tocSha256, tocBytes });
    if (layer === undefined) throw damaged(vault, ref, `its layer ${i + 1} is not a layer of Lazarus`);
    return layer;
  });
  return { metadata, layers, config: configDigest };
}

function readDocument(vault: Vault, ref: CheckpointRef, digest: string): JsonObject {
  const bytes = vault.read(digest);
  try {
    return asObject(JSON.parse(bytes.toString("utf8")));
  } catch {
    throw damaged(vault, ref, `blob ${digest} is not JSON`);
  }
}

function damaged(vault: Vault, ref: CheckpointRef, what: string): LazarusError {
  return new LazarusError(
    "CHECKPOINT_DAMAGED",
    `checkpoint ${ref.id} of ${vault.mission} is damaged: ${what}`,
    { hint: `lazarus verify ${vault.mission}`, details: { checkpoint: ref.id } },
  );
}

function newer(ref: CheckpointRef, what: string): LazarusError {
  return new LazarusError(
    "CHECKPOINT_NEWER",
    `checkpoint ${ref.id} was written by a newer version of Lazarus: ${what}`,
    { hint: "upgrade Lazarus on this machine: npm install -g lazarus@latest" },
  );
}

/** A matching digest does not prove that Lazarus wrote the blob. */
function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

export function openLayerOf(vault: Vault, layer: LayerRef): Layer {
  return openLayer(layerSource(vault, layer));
}

export function layerSource(vault: Vault, layer: LayerRef): LayerSource {
  return {
    path: vault.findBlob(layer.digest),
    digest: layer.digest,
    codec: codecOf(layer.mediaType)!,
    tocSha256: layer.tocSha256,
    tocBytes: layer.tocBytes,
  };
}

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

function encode(document: object): Buffer {
  return Buffer.from(JSON.stringify(document));
}
