// index.json of a vault: a standard OCI index with one entry per checkpoint. Annotations hold what may change after a
// checkpoint was made (pin, proof) and what differs between checkpoints of an unchanged cell (time, reason). A checksum
// over all entries detects a flipped bit in any of them. Pure.
import { createHash } from "node:crypto";
import { LazarusError } from "../../platform/errors.ts";
import { type CheckpointRef, REASONS, type Reason } from "../model/entry.ts";

export const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
/** Media type of a live point without a manifest (live-record.ts): other tools skip entries of a type that they do not know. */
export const RECORD_TYPE = "application/vnd.lazarus.live-point.v1+json";
const INDEX_TYPE = "application/vnd.oci.image.index.v1+json";
const REF_NAME = "org.opencontainers.image.ref.name";
const CREATED = "org.opencontainers.image.created";
const OWN = "vnd.lazarus.";
const CHECKSUM = `${OWN}checksum`;

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations: Record<string, string>;
}

export function encodeIndex(refs: readonly CheckpointRef[]): string {
  const manifests = `[${refs.map(descriptorText).join(",")}]`;
  const annotations = JSON.stringify({ [CHECKSUM]: sha256(manifests) });
  return `{"schemaVersion":2,"mediaType":"${INDEX_TYPE}","manifests":${manifests},"annotations":${annotations}}\n`;
}

/** Refs never change, and a process that takes many live points writes the same ones again each time. */
const encoded = new WeakMap<CheckpointRef, string>();

function descriptorText(ref: CheckpointRef): string {
  const known = encoded.get(ref);
  if (known !== undefined) return known;
  const text = JSON.stringify(toDescriptor(ref));
  encoded.set(ref, text);
  return text;
}

export function damagedIndex(file: string, what: string): LazarusError {
  return new LazarusError("VAULT_DAMAGED", `the index ${file} is damaged: ${what}`, {
    hint: "lazarus registry rebuild, which repairs the index from the manifests",
    details: { file },
  });
}

export function decodeIndex(text: string, file: string): CheckpointRef[] {
  const damaged = (what: string) => damagedIndex(file, what);
  let index: {
    schemaVersion?: unknown;
    mediaType?: unknown;
    manifests?: Descriptor[];
    annotations?: Record<string, string>;
  };
  try {
    index = JSON.parse(text);
  } catch {
    throw damaged("it is not JSON");
  }
  if (!Array.isArray(index?.manifests)) throw damaged("it lists no manifests");
  // The checksum does not cover these two fields, and other tools require them.
  if (index.schemaVersion !== 2 || index.mediaType !== INDEX_TYPE) throw damaged("it is not an OCI index");
  const expected = index.annotations?.[CHECKSUM];
  if (expected !== sha256(JSON.stringify(index.manifests))) throw damaged("its checksum does not match");
  return index.manifests.map((descriptor) => fromDescriptor(descriptor, damaged));
}

/** Entries of a damaged index that still parse. Their contents are not verified. */
export function readLooseEntries(text: string): CheckpointRef[] {
  const refs: CheckpointRef[] = [];
  for (const [source] of text.matchAll(LOOSE_ENTRY)) {
    try {
      refs.push(fromDescriptor(JSON.parse(source), (what) => new LazarusError("VAULT_DAMAGED", what)));
    } catch {
      // Damaged; the checkpoint is found through its manifest.
    }
  }
  return refs;
}

const LOOSE_ENTRY =
  /\{"mediaType":"[^"]*","digest":"sha256:[0-9a-f]{64}","size":\d+,"annotations":\{[^{}]*\}\}/g;

function toDescriptor(ref: CheckpointRef): Descriptor {
  const own: Record<string, string | null> = {
    reason: ref.reason,
    message: ref.message,
    parent: ref.parent,
    pinned: ref.pinned ? "true" : null,
    proven: ref.provenAtMs === null ? null : new Date(ref.provenAtMs).toISOString(),
    "before-restore-of": ref.beforeRestoreOf,
    "restored-paths": ref.restoredPaths === undefined ? null : JSON.stringify(ref.restoredPaths),
    "restored-part": ref.restoredPart ?? null,
  };
  const annotations: Record<string, string> = {
    [REF_NAME]: ref.id,
    [CREATED]: new Date(ref.createdAtMs).toISOString(),
  };
  for (const [key, value] of Object.entries(own)) if (value !== null) annotations[OWN + key] = value;
  const mediaType = ref.isRecord === true ? RECORD_TYPE : MANIFEST_TYPE;
  return { mediaType, digest: ref.manifest, size: ref.manifestSize, annotations };
}

function fromDescriptor(descriptor: Descriptor, damaged: (what: string) => LazarusError): CheckpointRef {
  const { annotations = {} } = descriptor;
  const id = annotations[REF_NAME];
  const createdAtMs = Date.parse(annotations[CREATED] ?? "");
  const reason = annotations[`${OWN}reason`] ?? "";
  if (!id || Number.isNaN(createdAtMs) || !isReason(reason))
    throw damaged(`the entry of ${descriptor.digest} is not a checkpoint`);
  const proven = annotations[`${OWN}proven`];
  const paths = annotations[`${OWN}restored-paths`];
  return {
    id,
    manifest: descriptor.digest,
    manifestSize: descriptor.size,
    createdAtMs,
    reason,
    message: annotations[`${OWN}message`] ?? null,
    parent: annotations[`${OWN}parent`] ?? null,
    pinned: annotations[`${OWN}pinned`] === "true",
    provenAtMs: proven === undefined ? null : Date.parse(proven),
    beforeRestoreOf: annotations[`${OWN}before-restore-of`] ?? null,
    ...(paths === undefined ? {} : { restoredPaths: JSON.parse(paths) }),
    ...(annotations[`${OWN}restored-part`] === "files" ? { restoredPart: "files" as const } : {}),
    ...(descriptor.mediaType === RECORD_TYPE ? { isRecord: true as const } : {}),
  };
}

function isReason(text: string): text is Reason {
  return (REASONS as readonly string[]).includes(text);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
