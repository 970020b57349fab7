// A checkpoint opened for reading: its listing, merged from its layers, and the verified bytes of any file in it.
// Disposing it closes the layer files.
import { LazarusError } from "../../platform/errors.ts";
import { type Entry, type Listing, partsOf } from "../model/entry.ts";
import { isContinuable, NOT_CONTINUABLE } from "./check-tree.ts";
import { createLayerReader, type FileReader, type LayerMembers, layerMembers } from "./layer-reader.ts";
import { readPackedToc, unpackToc, VERIFY_HINT } from "./layer-table.ts";
import { type LayerRef, layerSource } from "./manifest.ts";
import type { Toc } from "./toc.ts";
import type { Vault } from "./vault.ts";

/** The files of one checkpoint, readable without a restore. */
export interface Contents extends FileReader, Disposable {
  readonly listing: Listing;
  /** The raw tar bytes [at, at + length) of a layer. */
  readRaw(digest: string, at: number, length: number, use: (chunk: Buffer) => void): void;
}

/** Opens the files of a checkpoint for reading; with `only`, just those paths. */
export function openContents(
  vault: Vault,
  layers: readonly LayerRef[],
  only?: ReadonlySet<string>,
): Contents {
  const tocs = layers.map((ref) => {
    const source = layerSource(vault, ref);
    return unpackToc(source, readPackedToc(source), only);
  });
  const listing = new Map<string, Entry>();
  for (const [i, toc] of tocs.entries()) applyToc(listing, toc, layers[i]!.digest);
  const reader = createLayerReader(describeMembers(vault, layers, tocs));
  try {
    reader.openAll();
  } catch (error) {
    reader[Symbol.dispose]();
    throw error;
  }
  const { read, readRaw } = reader;
  return { listing, read, readRaw, [Symbol.dispose]: () => reader[Symbol.dispose]() };
}

/** Applies one layer to the listing of the layers below it. */
export function applyToc(listing: Map<string, Entry>, toc: Toc, layer: string): void {
  // A path may be in a table twice, and continues what is below the layer.
  const below = new Map<string, Entry | undefined>();
  for (const { path, after } of toc.entries) if (after !== undefined) below.set(path, listing.get(path));
  for (const path of toc.removed) listing.delete(path);
  for (const { at, length, after, ...entry } of toc.entries) {
    const own = at === undefined ? undefined : { layer, at, length: length ?? entry.size };
    if (own === undefined) listing.set(entry.path, entry);
    else if (after === undefined) listing.set(entry.path, { ...entry, location: own });
    else {
      const before = partsOf(continuedBy(entry.path, after, below.get(entry.path)));
      listing.set(entry.path, { ...entry, location: { ...own, before } });
    }
  }
}

function continuedBy(path: string, after: number, below: Entry | undefined): Entry {
  if (below !== undefined && isContinuable(below, after)) return below;
  throw new LazarusError("CHECKPOINT_DAMAGED", `${JSON.stringify(path)} ${NOT_CONTINUABLE}`, {
    hint: VERIFY_HINT,
    details: { path },
  });
}

/** The members of each distinct layer; `tocs` are the tables of `refs`. */
export function describeMembers(
  vault: Vault,
  refs: readonly LayerRef[],
  tocs: readonly Toc[],
): LayerMembers[] {
  const layers = new Map<string, LayerMembers>();
  for (const [i, { digest, mediaType }] of refs.entries())
    layers.set(digest, layerMembers({ digest, mediaType, path: vault.findBlob(digest) }, tocs[i]!));
  return [...layers.values()];
}
