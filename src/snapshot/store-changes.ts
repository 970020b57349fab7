// Stores what a survey found changed: one ordinary layer and, where secrets changed, one local-only layer. What could not
// be read is left out and said so (INV-6); key files never reach a layer that can be pushed (INV-7).
import type { CaptureItem } from "./capture-item.ts";
import { whiteoutsFor } from "./changes.ts";
import type { CheckpointMetadata, Flaw } from "./entry.ts";
import { type Codec, gzipCodec, zstdCodec } from "./oci/codec.ts";
import { createLayerWriter } from "./oci/layer-writer.ts";
import type { LayerRef } from "./oci/manifest.ts";
import { type Packed, packItems, packWhiteouts } from "./pack.ts";
import { comparePaths } from "./path-bytes.ts";
import type { Room } from "./room.ts";
import { createMatcher } from "./settings.ts";
import { copyDatabase, type Survey } from "./survey.ts";

export interface Stored {
  readonly layers: LayerRef[];
  readonly packed: Packed;
  readonly storedBytes: number;
}

export const NOTHING_PACKED: Packed = { entries: [], captured: new Map(), missed: [] };

/** Writes the ordinary layer and, where secrets changed, the local-only one. */
export async function storeChanges(room: Room, found: Survey, flaws: Flaw[]): Promise<Stored> {
  const codec = room.settings.compression === "zstd" ? zstdCodec : gzipCodec;
  const isSecret = createMatcher(room.settings.secrets);
  const secretGroups = new Set(
    found.changed.filter((item) => isSecret(item.path) && item.group !== undefined).map((item) => item.group),
  );
  const isLocal = (item: CaptureItem) =>
    item.type !== "directory" && (isSecret(item.path) || secretGroups.has(item.group ?? null!));
  const packed: Packed = { entries: [], captured: new Map(), missed: [] };
  const layers: LayerRef[] = [];
  const total = found.changed.reduce((sum, item) => sum + (item.type === "file" ? item.size : 0), 0);
  let done = 0;
  const onBytes = (count: number) => {
    done += count;
    room.onProgress({ phase: "storing", done, total, unit: "bytes" });
  };
  for (const localOnly of [false, true]) {
    const items = found.changed.filter((item) => isLocal(item) === localOnly);
    const removed = found.removed.filter((path) => isSecret(path) === localOnly);
    if (items.length + removed.length === 0) continue;
    layers.push(...(await storeLayer(room, found, { codec, localOnly, items, removed, onBytes }, packed)));
  }
  for (const { path, torn, degraded } of [...packed.captured].map(([path, item]) => ({ path, ...item }))) {
    if (torn !== undefined) flaws.push({ path, kind: "torn", reason: torn });
    if (degraded !== undefined) flaws.push({ path, kind: "degraded", reason: degraded });
  }
  for (const { path, why, reason } of packed.missed)
    if (why !== "vanished") flaws.push({ path, kind: "skipped", reason });
  return { layers, packed, storedBytes: layers.reduce((sum, layer) => sum + layer.size, 0) };
}

interface LayerPlan {
  readonly codec: Codec;
  readonly localOnly: boolean;
  readonly items: readonly CaptureItem[];
  readonly removed: readonly string[];
  readonly onBytes: (count: number) => void;
}

async function storeLayer(room: Room, found: Survey, plan: LayerPlan, all: Packed): Promise<LayerRef[]> {
  const { codec, localOnly } = plan;
  const writer = createLayerWriter(room.machine.disk, room.vault, {
    codec,
    localOnly,
    name: localOnly ? "local" : "layer",
  });
  try {
    const request = {
      root: room.cellRoot,
      writer,
      codec: codec.name,
      compress: codec.compress,
      onBytes: plan.onBytes,
    };
    packWhiteouts(request, whiteoutsFor(plan.removed, new Set(plan.items.map(({ path }) => path))));
    const packed = await packItems(request, plan.items);
    const second = await packItems(request, await copyLateDatabases(room, found, packed, plan.items));
    for (const part of [packed, second]) {
      // Not spread: a call takes no more than some 120,000 arguments.
      for (const entry of part.entries) all.entries.push(entry);
      for (const [path, item] of part.captured) all.captured.set(path, item);
      all.missed.push(...part.missed.filter(({ why }) => why !== "database"));
    }
    // A known path that could not be stored now is not in this checkpoint: better absent than stale.
    const known = new Set(found.walk.found.filter(({ row }) => row >= 0).map(({ path }) => path));
    const lost = [...packed.missed, ...second.missed]
      .map(({ path }) => path)
      .filter((path) => known.has(path) && !all.captured.has(path));
    const entries = [...packed.entries, ...second.entries];
    const removed = [...plan.removed, ...lost].sort(comparePaths);
    if (entries.length + removed.length === 0) return [];
    if (lost.length > 0) packWhiteouts(request, lost);
    return [writer.finish(entries, removed)];
  } finally {
    writer.abandon();
  }
}

/** Databases whose transaction began after the walk: copied now, through SQLite. */
async function copyLateDatabases(
  room: Room,
  found: Survey,
  packed: Packed,
  items: readonly CaptureItem[],
): Promise<CaptureItem[]> {
  const again: CaptureItem[] = [];
  for (const { path, why } of packed.missed) {
    if (why !== "database") continue;
    const item = items.find((each) => each.path === path)!;
    const copied = await copyDatabase(room, path, found.sources, room.vault.scratch, found.flaws);
    again.push({
      path,
      type: "file",
      size: item.size,
      source: copied ? found.sources.get(path)! : systemFile(room, path),
    });
  }
  return again;
}

/** Reading through an explicit source skips the check for databases: it was SQLite that could not. */
function systemFile(room: Room, path: string): string {
  return `${room.cellRoot}/${path}`;
}

export function countAll(found: Survey, stored: Stored): CheckpointMetadata["counts"] {
  const missed = new Set(stored.packed.missed.map(({ path }) => path));
  let files = 0;
  let directories = 0;
  let others = 0;
  let bytes = 0;
  for (const { path, type, size } of found.walk.found) {
    if (missed.has(path)) continue;
    if (type === "file") {
      files += 1;
      bytes += size;
    } else if (type === "directory") directories += 1;
    else others += 1;
  }
  let changedBytes = 0;
  for (const { entry } of stored.packed.captured.values()) changedBytes += entry.size;
  return {
    files,
    directories,
    others,
    bytes,
    changed: stored.packed.captured.size,
    removed: found.removed.length,
    changed_bytes: changedBytes,
    stored_bytes: stored.storedBytes,
  };
}
