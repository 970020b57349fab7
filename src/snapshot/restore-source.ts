// A checkpoint opened to be restored: its listing, checked as hostile input, and where its members lie. Two checkpoints
// of one vault are opened together so that the layers they share are read once and give the very same entries.
import { LazarusError } from "../platform/errors.ts";
import { applyToc } from "./contents.ts";
import type { Entry, Listing } from "./entry.ts";
import type { Layer } from "./oci/layer-reader.ts";
import { type Checkpoint, openLayerOf } from "./oci/manifest.ts";
import type { Vault } from "./oci/vault.ts";
import { parentPath } from "./path-bytes.ts";
import type { LayerMembers } from "./restore-order.ts";
import { describeMembers } from "./restore-reader.ts";

export interface Source {
  readonly checkpoint: Checkpoint;
  readonly listing: Listing;
  readonly layers: readonly LayerMembers[];
}

/** Layers are opened once per opener; nothing stays open between calls. */
export interface SourceOpener extends Disposable {
  open(checkpoint: Checkpoint): Source;
}

export function createSourceOpener(vault: Vault): SourceOpener {
  const layers = new Map<string, Layer>();
  const listings = new Map<string, ReadonlyMap<string, Entry>>();

  const layerOf = (ref: Checkpoint["layers"][number]): Layer => {
    const known = layers.get(ref.digest);
    if (known !== undefined) return known;
    const layer = openLayerOf(vault, ref);
    layers.set(ref.digest, layer);
    return layer;
  };

  /** The listing of a chain, from the longest beginning of it that is known already. */
  const listingOf = (chain: Checkpoint["layers"]): ReadonlyMap<string, Entry> => {
    const keys = chain.map((_, i) =>
      chain
        .slice(0, i + 1)
        .map(({ digest }) => digest)
        .join(" "),
    );
    let length = chain.length;
    while (length > 0 && !listings.has(keys[length - 1]!)) length -= 1;
    if (length === chain.length && length > 0) return listings.get(keys[length - 1]!)!;
    const listing = new Map(length === 0 ? [] : listings.get(keys[length - 1]!));
    for (let i = length; i < chain.length; i += 1) {
      applyToc(listing, layerOf(chain[i]!).toc, chain[i]!.digest);
      // The base is what other checkpoints share; a copy of a map costs a tenth of reading it again.
      if (i === 0 && chain.length > 1) listings.set(keys[0]!, new Map(listing));
    }
    if (chain.length > 0) listings.set(keys.at(-1)!, listing);
    return listing;
  };

  return {
    open(checkpoint) {
      const listing = listingOf(checkpoint.layers);
      refuseHostile(listing, checkpoint.ref.id);
      for (const ref of checkpoint.layers) layerOf(ref);
      return { checkpoint, listing, layers: describeMembers(vault, checkpoint.layers, layers) };
    },
    [Symbol.dispose]() {
      for (const layer of layers.values()) layer[Symbol.dispose]();
      layers.clear();
    },
  };
}

/** No entry may lie behind anything but directories: a link in its way could lead it out of the cell. */
export function refuseHostile(listing: Listing, id: string): void {
  let lastParent = ".";
  for (const path of listing.keys()) {
    if (path === ".") continue;
    const parent = parentPath(path);
    if (parent === lastParent) continue;
    const type = parent === "." ? "directory" : listing.get(parent)?.type;
    if (type !== "directory") {
      throw new LazarusError(
        "LAYER_HOSTILE",
        `checkpoint ${id} has ${JSON.stringify(path)} behind ${type === undefined ? "nothing" : `a ${type}`}; nothing was restored`,
        {
          hint: "do not trust where this vault came from; lazarus verify --deep",
          details: { path, checkpoint: id },
        },
      );
    }
    lastParent = parent;
  }
}
