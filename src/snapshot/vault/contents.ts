// A checkpoint opened for reading: its whole listing, merged from its layers, and the bytes of any file in it, checked
// against their digest as they pass. Closing it closes the layer files.
import { createHash } from "node:crypto";
import { LazarusError } from "../../platform/errors.ts";
import type { Entry, Listing } from "../model/entry.ts";
import type { Layer } from "./layer-reader.ts";
import { type LayerRef, openLayerOf } from "./manifest.ts";
import type { Toc } from "./toc.ts";
import type { Vault } from "./vault.ts";

export interface Contents extends Disposable {
  readonly listing: Listing;
  /**
   * Hands over a file's stored bytes in order: the whole content, or the concatenated extents of a sparse file.
   * Throws CHECKPOINT_DAMAGED, after the last chunk, when they do not match the file's digest.
   */
  read(entry: Entry, use: (chunk: Buffer) => void): void;
}

export function openContents(vault: Vault, layers: readonly LayerRef[]): Contents {
  const open = new Map<string, Layer>();
  try {
    const listing = new Map<string, Entry>();
    for (const ref of layers) {
      const layer = open.get(ref.digest) ?? openLayerOf(vault, ref);
      open.set(ref.digest, layer);
      applyToc(listing, layer.toc, ref.digest);
    }
    return createContents(vault, listing, open);
  } catch (error) {
    for (const layer of open.values()) layer[Symbol.dispose]();
    throw error;
  }
}

/** What one layer does to the listing below it. */
export function applyToc(listing: Map<string, Entry>, toc: Toc, layer: string): void {
  for (const path of toc.removed) listing.delete(path);
  for (const { at, length, ...entry } of toc.entries) {
    listing.set(
      entry.path,
      at === undefined ? entry : { ...entry, location: { layer, at, length: length ?? entry.size } },
    );
  }
}

function createContents(vault: Vault, listing: Listing, open: ReadonlyMap<string, Layer>): Contents {
  return {
    listing,
    read(entry, use) {
      const hash = createHash("sha256");
      if (entry.location !== undefined) {
        const { layer, at, length } = entry.location;
        open.get(layer)!.read(at, length, (chunk) => {
          hash.update(chunk);
          use(chunk);
        });
      }
      if (hash.digest("hex") !== entry.sha256) {
        throw new LazarusError(
          "CHECKPOINT_DAMAGED",
          `${entry.path} does not match its digest in the vault ${vault.root}`,
          {
            hint: `lazarus verify ${vault.mission} --deep`,
            details: { path: entry.path },
          },
        );
      }
    },
    [Symbol.dispose]() {
      for (const layer of open.values()) layer[Symbol.dispose]();
    },
  };
}
