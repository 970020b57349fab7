// Encodes and decodes the manifest and config blobs of a checkpoint. The config holds the metadata under `lazarus`;
// everything else is plain OCI. Blobs are untrusted: one with the wrong shape is an error that names it.
import { LazarusError } from "../../platform/errors.ts";
import type { JsonObject } from "../../platform/json-file.ts";
import type { CheckpointMetadata, CheckpointRef } from "../model/entry.ts";
import { codecOf, isLocalOnly } from "./codec.ts";
import { MANIFEST_TYPE } from "./index-json.ts";
import { type Layer, openLayer } from "./layer-reader.ts";
import type { LayerSource } from "./layer-table.ts";
import type { Vault } from "./vault.ts";

/** A layer as a manifest knows it. */
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
}

/** A checkpoint as read from its manifest. */
export interface Checkpoint {
  readonly ref: CheckpointRef;
  readonly metadata: CheckpointMetadata;
  /** Lowest first. */
  readonly layers: readonly LayerRef[];
  /** Digest of the config blob. */
  readonly config: string;
}

const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const TOC_ANNOTATION = "vnd.lazarus.toc.sha256";
const TOC_BYTES_ANNOTATION = "vnd.lazarus.toc.bytes";
const LOCAL_ANNOTATION = "vnd.lazarus.local-only";
const FORMAT = 1;

/** Stores config and manifest; the layers must already be in the vault. */
export function putCheckpoint(
  vault: Vault,
  metadata: CheckpointMetadata,
  layers: readonly LayerRef[],
): { digest: string; size: number } {
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
  return vault.put(
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
}

/** Reads manifest and config of a checkpoint. Does not open its layers. */
export function readCheckpoint(vault: Vault, ref: CheckpointRef): Checkpoint {
  const damaged = (what: string) =>
    new LazarusError("CHECKPOINT_DAMAGED", `checkpoint ${ref.id} of ${vault.mission} is damaged: ${what}`, {
      hint: `lazarus verify ${vault.mission}`,
      details: { checkpoint: ref.id },
    });
  const parse = (digest: string): JsonObject => {
    try {
      return asObject(JSON.parse(vault.read(digest).toString("utf8")));
    } catch (error) {
      if (error instanceof LazarusError) throw error;
      throw damaged(`blob ${digest} is not JSON`);
    }
  };
  const manifest = parse(ref.manifest);
  const configDigest = String(asObject(manifest.config).digest);
  const config = parse(configDigest);
  const metadata = asObject(config.lazarus) as unknown as CheckpointMetadata;
  if (metadata.format === undefined || !Array.isArray(manifest.layers))
    throw damaged("it has no Lazarus metadata");
  if (metadata.format !== FORMAT) {
    throw new LazarusError(
      "CHECKPOINT_NEWER",
      `checkpoint ${ref.id} has format ${metadata.format}; this version of Lazarus reads format ${FORMAT}`,
      {
        hint: "upgrade Lazarus on this machine: npm install -g lazarus@latest",
      },
    );
  }
  for (const list of ["flaws", "excluded", "flows", "runs"] as const)
    if (!Array.isArray(metadata[list])) throw damaged(`its metadata has no list of ${list}`);
  const diffIds = asObject(config.rootfs).diff_ids;
  const layers = manifest.layers.map((each: unknown, i): LayerRef => {
    const { digest, size, mediaType, annotations } = asObject(each);
    const { [TOC_ANNOTATION]: tocSha256, [TOC_BYTES_ANNOTATION]: recorded } = asObject(annotations);
    const tocBytes = recorded === undefined ? undefined : Number(recorded);
    const diffId: unknown = Array.isArray(diffIds) ? diffIds[i] : undefined;
    if (
      typeof digest !== "string" ||
      typeof size !== "number" ||
      typeof mediaType !== "string" ||
      typeof diffId !== "string" ||
      typeof tocSha256 !== "string" ||
      !(tocBytes === undefined || Number.isSafeInteger(tocBytes)) ||
      codecOf(mediaType) === undefined
    ) {
      throw damaged(`its layer ${i + 1} is not a layer of Lazarus`);
    }
    return { digest, size, mediaType, diffId, tocSha256, tocBytes };
  });
  return { ref, metadata, layers, config: configDigest };
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
