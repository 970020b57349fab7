// The files that restore workers make, cut into batches so that no member is inflated twice. Pure.
import { type Entry, storedLength } from "../model/entry.ts";
import type { LayerMembers } from "../vault/layer-reader.ts";
import { memberAt } from "../vault/toc.ts";

/** A file to be made at `path` below the root of its batch. */
export interface FileToMake {
  readonly path: string;
  readonly entry: Entry;
}

export interface Batch {
  readonly files: readonly FileToMake[];
  readonly bytes: number;
}

const BATCH_BYTES = 8 << 20;
const BATCH_FILES = 1024;

/** Sorted by where the bytes are stored; cut only between members. */
export function cutBatches(files: readonly FileToMake[], layers: readonly LayerMembers[]): Batch[] {
  const rank = new Map(layers.map(({ digest }, i) => [digest, i]));
  const place = ({ entry: { location } }: FileToMake) => (location ? rank.get(location.layer)! : -1);
  const sorted = [...files].sort(
    (a, b) => place(a) - place(b) || (a.entry.location?.at ?? 0) - (b.entry.location?.at ?? 0),
  );
  const batches: Batch[] = [];
  let batch: FileToMake[] = [];
  let bytes = 0;
  let last = -1;
  let lastLayer = -2;
  for (const file of sorted) {
    const { location } = file.entry;
    const layer = place(file);
    const full = bytes >= BATCH_BYTES || batch.length >= BATCH_FILES;
    const member = location === undefined ? -1 : memberAt(layers[layer]!.raw, location.at);
    if (full && batch.length > 0 && (layer !== lastLayer || member !== last || location === undefined)) {
      batches.push({ files: batch, bytes });
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += storedLength(file.entry);
    lastLayer = layer;
    last =
      location === undefined
        ? -1
        : memberAt(layers[layer]!.raw, location.at + Math.max(0, location.length - 1));
  }
  if (batch.length > 0) batches.push({ files: batch, bytes });
  return batches;
}
