// Checks files that continue others: their bytes are in several layers, so no layer alone shows whether they match their
// digest. Each version is hashed on from the one before it, so that a log with a thousand versions is read once. Read-only.
import { createHash, type Hash } from "node:crypto";
import type { Entry, Location } from "../model/entry.ts";
import { partsOf } from "../model/entry.ts";
import { applyToc, describeMembers } from "./contents.ts";
import { createLayerReader } from "./layer-reader.ts";
import { readPackedToc, readToc, unpackToc } from "./layer-table.ts";
import { type LayerRef, layerSource } from "./manifest.ts";
import type { Vault } from "./vault.ts";

export interface ContinuedChecker {
  /** Paths of continued files of a checkpoint that do not match their digest. */
  check(layers: readonly LayerRef[]): string[];
}

interface Hashed {
  readonly parts: readonly Location[];
  readonly state: Hash;
}

export function createContinuedChecker(vault: Vault): ContinuedChecker {
  /** By path: the version that was hashed last. */
  const hashed = new Map<string, Hashed>();
  return {
    check(layers) {
      const paths = continuedPaths(vault, layers);
      if (paths.size === 0) return [];
      const tocs = layers.map((layer) => {
        const source = layerSource(vault, layer);
        return unpackToc(source, readPackedToc(source), paths);
      });
      const listing = new Map<string, Entry>();
      for (const [i, toc] of tocs.entries()) applyToc(listing, toc, layers[i]!.digest);
      using reader = createLayerReader(describeMembers(vault, layers, tocs));
      return [...paths].filter((path) => {
        const entry = listing.get(path);
        if (entry?.location?.before === undefined) return false;
        const parts = partsOf(entry);
        const earlier = hashed.get(path);
        const isOn = earlier !== undefined && startsWith(parts, earlier.parts);
        const state = isOn ? earlier.state.copy() : createHash("sha256");
        for (const { layer, at, length } of parts.slice(isOn ? earlier.parts.length : 0))
          reader.readRaw(layer, at, length, (chunk) => state.update(chunk));
        hashed.set(path, { parts, state });
        return state.copy().digest("hex") !== entry.sha256;
      });
    },
  };
}

function continuedPaths(vault: Vault, layers: readonly LayerRef[]): Set<string> {
  const paths = new Set<string>();
  for (const layer of layers) {
    if (!layer.isContinued) continue;
    for (const { path, after } of readToc(layerSource(vault, layer)).entries)
      if (after !== undefined) paths.add(path);
  }
  return paths;
}

function startsWith(parts: readonly Location[], start: readonly Location[]): boolean {
  return start.every(
    ({ layer, at, length }, i) =>
      parts[i]?.layer === layer && parts[i].at === at && parts[i].length === length,
  );
}
