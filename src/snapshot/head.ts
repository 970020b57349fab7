// The newest checkpoint of a vault and the stat cache that goes with it: what the next checkpoint is compared with.
// Losing the cache costs time, nothing else.
import { join } from "node:path";
import { openContents } from "./contents.ts";
import { type Checkpoint, readCheckpoint } from "./oci/manifest.ts";
import type { Packed } from "./pack.ts";
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

/** Files written this short before the scan could change again without their stat showing it. */
const RACY_MS = 2000;

export function readHead(room: Room): Checkpoint | undefined {
  const newest = room.vault.list().at(-1);
  return newest === undefined ? undefined : readCheckpoint(room.vault, newest);
}

const cacheFile = (room: Room) => join(room.cacheDirectory, "stat-cache");

export function openCache(room: Room, head: Checkpoint | undefined): StatCache | undefined {
  if (head === undefined) return undefined;
  const cache = readStatCache(cacheFile(room), head.ref.manifest);
  if (cache !== undefined) return cache;
  using contents = openContents(room.vault, head.layers);
  return cacheFromListing(head.ref.manifest, contents.listing);
}

/** What the next checkpoint compares with. Losing it costs time, nothing else. */
export function saveCache(room: Room, found: Survey, packed: Packed, manifest: string): void {
  const { walk, cache, refreshed, scanStartMs } = found;
  const fresh = (path: string) => packed.captured.get(path) ?? refreshed.get(path);
  const kept = walk.found.map(({ path, unchanged }) => unchanged || fresh(path) !== undefined);
  const rowOf = new Int32Array(walk.found.length + 1);
  for (let i = 0; i < walk.found.length; i += 1) rowOf[i + 1] = rowOf[i]! + (kept[i] ? 1 : 0);
  const builder = createStatCacheBuilder(rowOf[walk.found.length]!);
  for (const [i, { path, row }] of walk.found.entries()) {
    if (!kept[i]) continue;
    const item = fresh(path);
    if (item === undefined) builder.copy(rowOf[i]!, cache!, row);
    else
      builder.set(rowOf[i]!, baseName(path), {
        ...item,
        racy: item.torn !== undefined || !(item.mark.ctimeMs < scanStartMs - RACY_MS),
      });
    builder.setChildren(rowOf[i]!, 0, 0);
  }
  for (const { directory, first, count } of walk.runs) {
    if (kept[directory])
      builder.setChildren(rowOf[directory]!, rowOf[first]!, rowOf[first + count]! - rowOf[first]!);
  }
  writeStatCache(room.machine, cacheFile(room), builder.finish(manifest));
}
