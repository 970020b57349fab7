// A checkpoint opened for reading: its listing, merged from its layers, and the verified bytes of any file in it.
// Disposing it closes the layer files.
import type { Entry, Listing } from "../model/entry.ts";
import { createLayerReader, type FileReader, type LayerMembers, layerMembers } from "./layer-reader.ts";
import { readToc } from "./layer-table.ts";
import { type LayerRef, layerSource } from "./manifest.ts";
import type { Toc } from "./toc.ts";
import type { Vault } from "./vault.ts";

/** The files of one checkpoint, readable without a restore. */
export interface Contents extends FileReader, Disposable {
  readonly listing: Listing;
}

/** Opens the files of a checkpoint for reading. */
export function openContents(vault: Vault, layers: readonly LayerRef[]): Contents {
  const tocs = layers.map((ref) => readToc(layerSource(vault, ref)));
  const listing = new Map<string, Entry>();
  for (const [i, toc] of tocs.entries()) applyToc(listing, toc, layers[i]!.digest);
  const reader = createLayerReader(describeMembers(vault, layers, tocs));
  try {
    reader.openAll();
  } catch (error) {
    reader[Symbol.dispose]();
    throw error;
  }
  return { listing, read: reader.read, [Symbol.dispose]: () => reader[Symbol.dispose]() };
}

/** Applies one layer to the listing of the layers below it. */
export function applyToc(listing: Map<string, Entry>, toc: Toc, layer: string): void {
  for (const path of toc.removed) listing.delete(path);
  for (const { at, length, ...entry } of toc.entries) {
    listing.set(
      entry.path,
      at === undefined ? entry : { ...entry, location: { layer, at, length: length ?? entry.size } },
    );
  }
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
