// The newest checkpoint of a vault and its rows: what the next checkpoint is compared with.
import { statSync } from "node:fs";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import { bringForward } from "../scan/bring-forward.ts";
import { type ChangedRows, rowsFromListing } from "../scan/changed-rows.ts";
import { NO_ROWS, type StatRows } from "../scan/stat-rows.ts";
import { openStatStore, StatStoreError, saveRows, statStoreFile } from "../scan/stat-store.ts";
import { EMPTY_TREE, findFaults } from "../vault/check-tree.ts";
import { openContents } from "../vault/contents.ts";
import { readPackedToc, readToc } from "../vault/layer-table.ts";
import { type Checkpoint, type LayerRef, layerSource, readCheckpoint } from "../vault/manifest.ts";
import { quarantineDamage } from "../vault/quarantine.ts";
import type { Vault } from "../vault/vault.ts";

export interface Baseline extends Disposable {
  readonly head: Checkpoint | undefined;
  /** The rows of `head`; none without one. */
  readonly rows: StatRows;
  /** Set when the newest checkpoint is damaged: why everything is stored again. */
  readonly damage?: string;
}

/**
 * A damaged checkpoint is not used as a base, and does not prevent the next one: then everything is stored again. `isRepeated`:
 * another one will follow soon.
 */
export function openBaseline(context: MissionContext, { isRepeated = false } = {}): Baseline {
  const newest = context.vault.list().at(-1);
  if (newest === undefined) return { head: undefined, ...NOTHING };
  try {
    const head = readCheckpoint(context.vault, newest);
    for (const layer of head.layers) checkLayer(context.vault, layer);
    if (head.metadata.checked !== true) checkTree(context.vault, head);
    return { head, ...openRows(context, head, isRepeated) };
  } catch (error) {
    if (!(error instanceof LazarusError) || error.kind !== "damaged") throw error;
    quarantineDamage(context.vault, error);
    const damage = `the previous checkpoint ${newest.id} is damaged (${error.message}): everything was stored again`;
    return { head: undefined, ...NOTHING, damage };
  }
}

const NOTHING = { rows: NO_ROWS, [Symbol.dispose]: () => {} };

function openRows(
  context: MissionContext,
  head: Checkpoint,
  isRepeated: boolean,
): Omit<Baseline, "head" | "damage"> {
  const file = statStoreFile(context.cacheDirectory);
  const store = openStatStore(context.machine, file, digestsOf(head.layers), isRepeated);
  if (store === undefined) return { ...NOTHING, rows: readRows(context, head) };
  const dispose = () => store[Symbol.dispose]();
  const later = head.layers.slice(store.layers.length);
  if (later.length === 0) return { rows: store, [Symbol.dispose]: dispose };
  try {
    const tables = later.map((layer) => readToc(layerSource(context.vault, layer)));
    return { rows: bringForward(store, tables, skippedPaths(head)), [Symbol.dispose]: dispose };
  } catch (error) {
    dispose();
    if (!(error instanceof StatStoreError)) throw error;
    return { ...NOTHING, rows: readRows(context, head) };
  }
}

function skippedPaths({ metadata }: Checkpoint): string[] {
  return metadata.flaws.filter(({ kind }) => kind === "skipped").map(({ path }) => path);
}

/** The rows of a checkpoint without its stat store: everything will be hashed. */
export function readRows(context: MissionContext, head: Checkpoint): ChangedRows {
  using contents = openContents(context.vault, head.layers);
  return rowsFromListing(contents.listing, skippedPaths(head));
}

/** The stat of each layer file that this process has checked: the pit builds on the same layers again and again. */
const checkedLayers = new Map<string, string>();
const MAX_CHECKED = 10_000;

/** Checks a layer's size and its table of contents, which restores are planned from; `verify --deep` checks the rest. */
function checkLayer(vault: Vault, layer: LayerRef): void {
  const file = vault.blobPath(layer.digest);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.size !== layer.size)
    throw new LazarusError(
      "LAYER_DAMAGED",
      `layer ${layer.digest} has ${stat?.size ?? "no"} bytes of ${layer.size}`,
      { details: { layer: layer.digest } },
    );
  const stamp = `${layer.tocSha256} ${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs}`;
  if (checkedLayers.get(file) === stamp) return;
  readPackedToc(layerSource(vault, layer));
  if (checkedLayers.size >= MAX_CHECKED) checkedLayers.clear();
  checkedLayers.set(file, stamp);
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

/** Writes the rows of a checkpoint, which must list exactly what it holds. */
export function saveBaseline(context: MissionContext, rows: ChangedRows, layers: readonly LayerRef[]): void {
  try {
    saveRows(context.machine, statStoreFile(context.cacheDirectory), rows, digestsOf(layers));
  } catch (error) {
    // The checkpoint is published. An older store names other layers and is ignored.
    const isSqlite = error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
    const isKnown = isSqlite || error instanceof StatStoreError || error instanceof LazarusError;
    if (!isKnown && systemErrorCode(error) === undefined) throw error;
  }
}

function digestsOf(layers: readonly LayerRef[]): string[] {
  return layers.map(({ digest }) => digest);
}
