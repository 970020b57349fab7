// The newest checkpoint of a vault and the stat cache that goes with it: what the next checkpoint is compared with.
// Losing the cache costs time, nothing else.
import { statSync } from "node:fs";
import { join } from "node:path";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";
import { openContents } from "./contents.ts";
import { readPackedToc } from "./oci/layer-reader.ts";
import { type Checkpoint, type LayerRef, layerSource, readCheckpoint } from "./oci/manifest.ts";
import type { Vault } from "./oci/vault.ts";
import type { Packed } from "./pack.ts";
import { LEAST_ROWS } from "./probe.ts";
import type { Room } from "./room.ts";
import {
  baseName,
  cacheFromListing,
  createStatCacheBuilder,
  readStatCache,
  type StatCache,
  writeStatCache,
} from "./stat-cache.ts";
import type { Survey } from "./survey.ts";
import type { Found } from "./walk.ts";

/** Files written this short before the scan could change again without their stat showing it. */
const RACY_MS = 2000;

export interface Head {
  readonly head: Checkpoint | undefined;
  readonly cache: StatCache | undefined;
  /** Why everything is stored anew, when the checkpoint before is damaged. */
  readonly damage?: string;
}

/**
 * What the next checkpoint builds on. A damaged checkpoint is no ground to build on, and no reason to stop saving: then
 * everything is stored anew.
 */
export function openHead(room: Room): Head {
  const newest = room.vault.list().at(-1);
  if (newest === undefined) return { head: undefined, cache: undefined };
  try {
    const head = readCheckpoint(room.vault, newest);
    for (const layer of head.layers) checkLayer(room.vault, layer);
    return { head, cache: openCache(room, head) };
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    const damage = `the checkpoint ${newest.id} before it is damaged (${error.message}): everything was stored anew`;
    return { head: undefined, cache: undefined, damage };
  }
}

/** Its size and its table, which is what restores are planned from; the bytes of files are for `verify --deep`. */
function checkLayer(vault: Vault, layer: LayerRef): void {
  const found = statSync(vault.blobPath(layer.digest), { throwIfNoEntry: false })?.size;
  if (found !== layer.size)
    throw new LazarusError(
      "LAYER_DAMAGED",
      `layer ${layer.digest} has ${found ?? "no"} bytes of ${layer.size}`,
    );
  readPackedToc(layerSource(vault, layer));
}

const cacheFile = (room: Room) => join(room.cacheDirectory, "stat-cache");

/** Whether the cache is so large that threads should be called before it is read. */
export function hasLargeCache(room: Room): boolean {
  const bytes = statSync(cacheFile(room), { throwIfNoEntry: false })?.size ?? 0;
  return bytes > LEAST_ROWS * LEAST_ROW_BYTES;
}

/** A row's columns without its name. */
const LEAST_ROW_BYTES = 95;

export function openCache(room: Room, head: Checkpoint | undefined): StatCache | undefined {
  if (head === undefined) return undefined;
  const cache = readStatCache(cacheFile(room), head.ref.manifest);
  if (cache !== undefined) return cache;
  using contents = openContents(room.vault, head.layers);
  return cacheFromListing(head.ref.manifest, contents.listing);
}

/** What the next checkpoint compares with. It must hold exactly what the checkpoint holds, no more and no less. */
export function saveCache(room: Room, found: Survey, packed: Packed, manifest: string): void {
  try {
    writeStatCache(room.machine, cacheFile(room), buildCache(found, packed, manifest));
  } catch (error) {
    // The checkpoint stands. An older cache names another manifest and is not believed.
    if (systemErrorCode(error) === undefined) throw error;
  }
}

export function buildCache(found: Survey, packed: Packed, manifest: string): StatCache {
  const { walk, cache, refreshed, scanStartMs, sources } = found;
  const removed = new Set(found.removed);
  // A lookup by path costs half a microsecond: none for what has one name, is unchanged and was not copied by SQLite.
  const isPlain = ({ path, unchanged, inode }: Found) =>
    unchanged && inode === undefined && (sources.size === 0 || !sources.has(path));
  const fresh = (found: Found) =>
    isPlain(found) ? undefined : (packed.captured.get(found.path) ?? refreshed.get(found.path));
  const items = walk.found.map(fresh);
  const kept = new Uint8Array(walk.found.length);
  const keep = (i: number) => {
    const seen = walk.found[i]!;
    const isGone = removed.size > 0 && removed.has(seen.path);
    kept[i] = items[i] !== undefined || (seen.unchanged && !isGone) ? 1 : 0;
  };
  if (walk.found.length > 0) keep(0);
  // Runs come parents first: what stands below a directory that was lost is lost with it.
  for (const { directory, first, count } of walk.runs) {
    if (kept[directory]) for (let i = first; i < first + count; i += 1) keep(i);
  }
  const rowOf = new Int32Array(walk.found.length + 1);
  for (let i = 0; i < walk.found.length; i += 1) rowOf[i + 1] = rowOf[i]! + kept[i]!;
  const builder = createStatCacheBuilder(rowOf[walk.found.length]!);
  for (let i = 0; i < walk.found.length; i += 1) {
    if (!kept[i]) continue;
    const item = items[i];
    if (item !== undefined) {
      const { path } = walk.found[i]!;
      builder.set(rowOf[i]!, baseName(path), {
        ...item,
        // The stat of a live database says nothing about the copy that stands for it.
        racy: item.torn !== undefined || sources.has(path) || !(item.mark.ctimeMs < scanStartMs - RACY_MS),
      });
      builder.setChildren(rowOf[i]!, 0, 0, true);
      continue;
    }
    // Unchanged rows mostly stand together, in the old cache and in the new one: copied at one go.
    const { row } = walk.found[i]!;
    let count = 1;
    const goesOn = (next: number) =>
      next < walk.found.length &&
      kept[next] &&
      items[next] === undefined &&
      walk.found[next]!.row === row + count;
    while (goesOn(i + count)) count += 1;
    builder.copy(rowOf[i]!, cache!, row, count);
    for (let copied = 0; copied < count; copied += 1) builder.setChildren(rowOf[i]! + copied, 0, 0, true);
    i += count - 1;
  }
  for (const { directory, first, count, complete } of walk.runs) {
    if (!kept[directory]) continue;
    const rows = rowOf[first + count]! - rowOf[first]!;
    builder.setChildren(rowOf[directory]!, rowOf[first]!, rows, complete && rows === count);
  }
  return builder.finish(manifest);
}
