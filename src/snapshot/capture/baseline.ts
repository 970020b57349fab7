// The newest checkpoint of a vault and its stat cache: what the next checkpoint is compared with. Losing the cache costs
// time, nothing else.
import { statSync } from "node:fs";
import { join } from "node:path";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import { readStatCache, type StatCache, writeStatCache } from "../scan/stat-cache.ts";
import { cacheFromListing } from "../scan/stat-cache-builder.ts";
import { EMPTY_TREE, findFaults } from "../vault/check-tree.ts";
import { openContents } from "../vault/contents.ts";
import { readPackedToc, readToc } from "../vault/layer-table.ts";
import { type Checkpoint, type LayerRef, layerSource, readCheckpoint } from "../vault/manifest.ts";
import { quarantineDamage } from "../vault/quarantine.ts";
import type { Vault } from "../vault/vault.ts";

export interface Baseline {
  readonly head: Checkpoint | undefined;
  readonly cache: StatCache | undefined;
  /** Set when the newest checkpoint is damaged: why everything is stored again. */
  readonly damage?: string;
}

/** A damaged checkpoint is not built upon, and does not prevent the next one: then everything is stored again. */
export function openBaseline(context: MissionContext): Baseline {
  const newest = context.vault.list().at(-1);
  if (newest === undefined) return { head: undefined, cache: undefined };
  try {
    const head = readCheckpoint(context.vault, newest);
    for (const layer of head.layers) checkLayer(context.vault, layer);
    if (head.metadata.checked !== true) checkTree(context.vault, head);
    return { head, cache: openCache(context, head) };
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    quarantineDamage(context.vault, error);
    const damage = `the previous checkpoint ${newest.id} is damaged (${error.message}): everything was stored again`;
    return { head: undefined, cache: undefined, damage };
  }
}

/** Checks a layer's size and its table of contents, which restores are planned from; `verify --deep` checks the rest. */
function checkLayer(vault: Vault, layer: LayerRef): void {
  const found = statSync(vault.blobPath(layer.digest), { throwIfNoEntry: false })?.size;
  if (found !== layer.size)
    throw new LazarusError(
      "LAYER_DAMAGED",
      `layer ${layer.digest} has ${found ?? "no"} bytes of ${layer.size}`,
      { details: { layer: layer.digest } },
    );
  readPackedToc(layerSource(vault, layer));
}

/** Checkpoints of early versions passed no gate. */
function checkTree(vault: Vault, { layers }: Checkpoint): void {
  const [fault] = findFaults(
    EMPTY_TREE,
    layers.map((layer) => readToc(layerSource(vault, layer))),
  );
  if (fault === undefined) return;
  throw new LazarusError("CHECKPOINT_DAMAGED", `${JSON.stringify(fault.path)} ${fault.problem}`);
}

const cacheFile = (context: MissionContext) => join(context.cacheDirectory, "stat-cache");

function openCache(context: MissionContext, head: Checkpoint): StatCache {
  const cache = readStatCache(cacheFile(context), head.ref.manifest);
  if (cache !== undefined) return cache;
  using contents = openContents(context.vault, head.layers);
  return cacheFromListing(head.ref.manifest, contents.listing);
}

/** Writes the stat cache, which must list exactly what the checkpoint holds. */
export function saveCache(context: MissionContext, cache: StatCache): void {
  try {
    writeStatCache(context.machine, cacheFile(context), cache);
  } catch (error) {
    // The checkpoint is published. An older cache names another manifest and is ignored.
    if (systemErrorCode(error) === undefined) throw error;
  }
}
