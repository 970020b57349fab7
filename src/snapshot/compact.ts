// Keeps the chain of layers short: merges the newest small layers into one, or everything into a new base when the
// deltas outgrow it. Members whose entries are all still current are copied as they are, without recompressing. Old
// checkpoints keep their own layers until they are pruned; a crash here leaves only scratch.
import { crashPoint } from "../platform/crash-point.ts";
import { whiteoutsFor } from "./changes.ts";
import { type Codec, codecOf, isLocalOnly } from "./oci/codec.ts";
import type { Layer } from "./oci/layer-reader.ts";
import { createLayerWriter, type LayerWriter } from "./oci/layer-writer.ts";
import { type LayerRef, openLayerOf } from "./oci/manifest.ts";
import type { TocEntry } from "./oci/toc.ts";
import { packWhiteouts } from "./pack.ts";
import { comparePaths } from "./path-bytes.ts";
import type { Room } from "./room.ts";
import { encodeHeader, encodeSparseMap, padding } from "./tar/header.ts";

export const MAX_LAYERS = 32;
const LEAST_MERGED = 8;
const MERGED_MEMBER_BYTES = 1 << 20;

/** From which layer on to merge; undefined when the chain is fine. Sizes are of layers, lowest first. */
export function planCompaction(sizes: readonly number[]): number | undefined {
  const [base = 0, ...deltas] = sizes;
  const total = deltas.reduce((sum, size) => sum + size, 0);
  if (deltas.length > 1 && total > base / 2 && deltas.length >= LEAST_MERGED) return 0;
  if (sizes.length < MAX_LAYERS) return undefined;
  // From the newest down: stop before a layer that outweighs all newer ones, so that each byte is rewritten rarely.
  let from = sizes.length - 1;
  let newer = sizes[from]!;
  while (from > 1 && sizes[from - 1]! <= Math.max(newer, sizes[from]! * 2)) {
    from -= 1;
    newer += sizes[from]!;
  }
  return sizes.length - from >= LEAST_MERGED ? from : 1;
}

/** The same content in fewer layers. */
export function compactLayers(room: Room, layers: readonly LayerRef[], from: number): LayerRef[] {
  const merged = layers.slice(from);
  const opened = merged.map((ref) => openLayerOf(room.vault, ref));
  try {
    const live = new Map<string, TocEntry>();
    const removed = new Set<string>();
    for (const layer of opened) {
      for (const path of layer.toc.removed) {
        live.delete(path);
        removed.add(path);
      }
      for (const entry of layer.toc.entries) live.set(entry.path, entry);
    }
    for (const path of live.keys()) removed.delete(path);
    const gone = from === 0 ? [] : [...removed].sort(comparePaths);
    const kinds = [false, true].filter((local) => merged.some((ref) => isLocalOnly(ref.mediaType) === local));
    const results = kinds.map((local) => {
      const sources = opened.filter((_, i) => isLocalOnly(merged[i]!.mediaType) === local);
      const codec = codecOf(merged.find((ref) => isLocalOnly(ref.mediaType) === local)!.mediaType)!;
      // Removals go with the ordinary layer; a lone local one carries them itself.
      return mergeInto(room, codec, local, sources, live, local && kinds.length > 1 ? [] : gone);
    });
    crashPoint("snapshot.compact.merged");
    return [...layers.slice(0, from), ...results];
  } finally {
    for (const layer of opened) layer[Symbol.dispose]();
  }
}

function mergeInto(
  room: Room,
  codec: Codec,
  localOnly: boolean,
  sources: readonly Layer[],
  live: ReadonlyMap<string, TocEntry>,
  removed: readonly string[],
): LayerRef {
  const writer = createLayerWriter(room.machine.disk, room.vault, {
    codec,
    localOnly,
    name: `compacted-${localOnly ? "local" : "layer"}`,
  });
  try {
    const entries: TocEntry[] = [];
    const request = {
      root: "",
      writer,
      codec: codec.name,
      compress: codec.compress,
      onBytes: () => {},
    } as const;
    packWhiteouts(request, whiteoutsFor(removed, new Set(live.keys())));
    for (const layer of sources) copyLayer(layer, codec, writer, live, entries);
    return writer.finish(entries, removed);
  } finally {
    writer.abandon();
  }
}

/** Copies what is still current of one layer: whole members where possible, entry by entry where not. */
function copyLayer(
  layer: Layer,
  codec: Codec,
  writer: LayerWriter,
  live: ReadonlyMap<string, TocEntry>,
  entries: TocEntry[],
): void {
  let next = 0;
  let rawStart = 0;
  const { members } = layer.toc;
  for (let index = 0; index < members.length; index += 1) {
    const member = members[index]!;
    const inside = layer.toc.entries.slice(next, next + member.entries);
    next += member.entries;
    const start = rawStart;
    rawStart += member.raw;
    // Members without a header continue the large file before them; those were handled with it.
    if (inside.length === 0) continue;
    let end = index + 1;
    while (members[end]?.entries === 0 && reaches(inside, rawStart)) {
      rawStart += members[end]!.raw;
      end += 1;
    }
    if (inside.every((entry) => live.get(entry.path) === entry)) {
      const shift = writer.rawLength - start;
      for (let i = index; i < end; i += 1) {
        const chunks: Buffer[] = [];
        const from = start + members.slice(index, i).reduce((sum, { raw }) => sum + raw, 0);
        layer.read(from, members[i]!.raw, (chunk) => chunks.push(chunk));
        writer.append(layer.readMember(i), Buffer.concat(chunks), members[i]!.entries);
      }
      for (const entry of inside)
        entries.push(entry.at === undefined ? entry : { ...entry, at: entry.at + shift });
    } else
      rewrite(
        layer,
        codec,
        writer,
        inside.filter((entry) => live.get(entry.path) === entry),
        entries,
      );
    index = end - 1;
  }
}

/** Whether the data of the last entry goes on beyond this point of the raw stream. */
function reaches(inside: readonly TocEntry[], rawEnd: number): boolean {
  return inside.some((entry) => entry.at !== undefined && entry.at + (entry.length ?? 0) > rawEnd);
}

/** Writes entries anew from the table of contents and their bytes. */
function rewrite(
  layer: Layer,
  codec: Codec,
  writer: LayerWriter,
  inside: readonly TocEntry[],
  entries: TocEntry[],
): void {
  const leaders = new Map<string, string>();
  for (const entry of inside) {
    const linkTo = entry.group === undefined ? undefined : leaders.get(entry.group);
    const map =
      entry.extents === undefined || linkTo !== undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
    const length = linkTo === undefined ? (entry.length ?? 0) : 0;
    const header = encodeHeader(entry, {
      storedSize: length === 0 && map.length === 0 ? 0 : length + map.length,
      ...(linkTo === undefined ? {} : { linkTo }),
    });
    const start = writer.rawLength;
    let pending: Buffer[] = [header, map];
    let size = header.length + map.length;
    let count = 1;
    const flush = () => {
      const raw = Buffer.concat(pending);
      writer.append(codec.compress(raw), raw, count);
      pending = [];
      size = 0;
      count = 0;
    };
    if (length > 0) {
      layer.read(entry.at!, length, (chunk) => {
        pending.push(Buffer.from(chunk));
        size += chunk.length;
        if (size >= MERGED_MEMBER_BYTES) flush();
      });
    }
    pending.push(Buffer.alloc(padding(length)));
    flush();
    const moved: TocEntry =
      entry.at === undefined ? entry : { ...entry, at: start + header.length + map.length };
    // Further links of the group carry the place of the first.
    const first = linkTo === undefined ? undefined : entries.findLast((other) => other.path === linkTo);
    entries.push(first?.at === undefined ? moved : { ...moved, at: first.at });
    if (entry.group !== undefined && linkTo === undefined) leaders.set(entry.group, entry.path);
  }
}
