// Recovers the list of checkpoints when index.json is damaged or missing: from the manifests among the blobs, plus what
// the damaged index still says about pins, proofs and checkpoints of an unchanged cell. Only complete checkpoints are
// listed. Read-only.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { CheckpointMetadata, CheckpointRef } from "../model/entry.ts";
import { readLooseEntries } from "./index-json.ts";
import { readCheckpoint, type StoredAs, storedAs } from "./manifest.ts";
import type { Vault } from "./vault.ts";

/** An intact manifest or record found among the blobs, with everything that it needs. */
export interface FoundManifest extends StoredAs {
  readonly metadata: CheckpointMetadata;
}

/** A manifest has a few hundred bytes per layer; larger blobs are layers. */
const MANIFEST_LIMIT_BYTES = 1 << 20;
const ID = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-[0-9a-z]{6}$/;

export function recoverRefs(vault: Vault): CheckpointRef[] {
  let text = "";
  try {
    text = readFileSync(join(vault.root, "index.json"), "utf8");
  } catch {}
  return mergeSources(readLooseEntries(text), findManifests(vault));
}

/**
 * Merges both sources. Manifests and configs are verified by digest and take precedence; what only the index has (pins, proofs,
 * checkpoints of an unchanged cell) is taken where it is plausible.
 */
export function mergeSources(
  loose: readonly CheckpointRef[],
  found: readonly FoundManifest[],
): CheckpointRef[] {
  const byManifest = new Map(found.map((each) => [each.manifest, each]));
  const refs = new Map<string, CheckpointRef>();
  for (const entry of loose) {
    const source = byManifest.get(entry.manifest);
    if (source === undefined) continue;
    const own = entry.id === source.metadata.checkpoint_id;
    const createdAtMs = own ? source.metadata.created_ms : plausibleTime(entry);
    if (createdAtMs === undefined || refs.has(entry.id)) continue;
    // The type of the entry may be what is damaged.
    const { isRecord: _, ...rest } = entry;
    refs.set(entry.id, {
      ...rest,
      ...(own ? verifiedFields(source) : {}),
      ...storedAs(source),
      createdAtMs,
      provenAtMs: Number.isNaN(entry.provenAtMs) ? null : entry.provenAtMs,
    });
  }
  for (const source of found) {
    const { checkpoint_id: id } = source.metadata;
    if (refs.has(id)) continue;
    refs.set(id, { ...verifiedFields(source), pinned: false, provenAtMs: null, beforeRestoreOf: null });
  }
  return [...refs.values()].sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
}

function verifiedFields({ metadata, ...stored }: FoundManifest) {
  return {
    id: metadata.checkpoint_id,
    ...storedAs(stored),
    createdAtMs: metadata.created_ms,
    reason: metadata.reason,
    message: metadata.message,
    parent: metadata.parent,
  };
}

/** An id contains its creation time to the second; a time that disagrees with it is damaged, and the id is used. */
function plausibleTime(entry: CheckpointRef): number | undefined {
  const match = ID.exec(entry.id);
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const ms = Date.UTC(year, month - 1, day, hour, minute, second);
  return Math.floor(entry.createdAtMs / 1000) * 1000 === ms ? entry.createdAtMs : ms;
}

function findManifests(vault: Vault): FoundManifest[] {
  const found: FoundManifest[] = [];
  for (const { digest, size } of vault.blobs()) {
    if (size > MANIFEST_LIMIT_BYTES) continue;
    const complete = readComplete(vault, digest, size);
    if (complete !== undefined) found.push(complete);
  }
  return found;
}

/** A blob that is the manifest or record of a complete checkpoint; undefined for every other blob. */
function readComplete(vault: Vault, manifest: string, manifestSize: number): FoundManifest | undefined {
  const ref = { id: "?", manifest, manifestSize } as CheckpointRef;
  try {
    const { metadata, layers, isRecord } = readCheckpoint(vault, ref);
    const complete = layers.every(({ digest, size }) => statSync(vault.findBlob(digest)).size === size);
    if (!complete || typeof metadata.checkpoint_id !== "string") return undefined;
    return { manifest, manifestSize, ...(isRecord && { isRecord }), metadata };
  } catch {
    return undefined;
  }
}
