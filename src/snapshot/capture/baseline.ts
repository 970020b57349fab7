// The newest checkpoint of a vault and the stat cache that goes with it: what the next checkpoint is compared with.
// Losing the cache costs time, nothing else.
import { statSync } from "node:fs";
import { join } from "node:path";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import { buildCache } from "../scan/next-cache.ts";
import { LEAST_ROWS } from "../scan/probe.ts";
import { readStatCache, type StatCache, writeStatCache } from "../scan/stat-cache.ts";
import { cacheFromListing } from "../scan/stat-cache-builder.ts";
import { openContents } from "../vault/contents.ts";
import { readPackedToc } from "../vault/layer-table.ts";
import { type Checkpoint, type LayerRef, layerSource, readCheckpoint } from "../vault/manifest.ts";
import type { Vault } from "../vault/vault.ts";
import type { Survey } from "./survey.ts";

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
export function openHead(context: MissionContext): Head {
  const newest = context.vault.list().at(-1);
  if (newest === undefined) return { head: undefined, cache: undefined };
  try {
    const head = readCheckpoint(context.vault, newest);
    for (const layer of head.layers) checkLayer(context.vault, layer);
    return { head, cache: openCache(context, head) };
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

const cacheFile = (context: MissionContext) => join(context.cacheDirectory, "stat-cache");

/** Whether the cache is so large that threads should be called before it is read. */
export function hasLargeCache(context: MissionContext): boolean {
  const bytes = statSync(cacheFile(context), { throwIfNoEntry: false })?.size ?? 0;
  return bytes > LEAST_ROWS * LEAST_ROW_BYTES;
}

/** A row's columns without its name. */
const LEAST_ROW_BYTES = 100;

export function openCache(context: MissionContext, head: Checkpoint | undefined): StatCache | undefined {
  if (head === undefined) return undefined;
  const cache = readStatCache(cacheFile(context), head.ref.manifest);
  if (cache !== undefined) return cache;
  using contents = openContents(context.vault, head.layers);
  return cacheFromListing(head.ref.manifest, contents.listing);
}

/** What the next checkpoint compares with. It must hold exactly what the checkpoint holds, no more and no less. */
export function saveCache(
  context: MissionContext,
  found: Survey,
  fresh: readonly (CapturedItem | undefined)[],
  manifest: string,
): void {
  try {
    writeStatCache(context.machine, cacheFile(context), buildCache(found, fresh, manifest));
  } catch (error) {
    // The checkpoint stands. An older cache names another manifest and is not believed.
    if (systemErrorCode(error) === undefined) throw error;
  }
}
