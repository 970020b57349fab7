// Keeps the chain of layers short: merges the newest small layers into one, or all layers into a new base when the deltas
// outgrow it. Members whose entries are all current are copied without recompressing them. Old checkpoints keep their
// layers until they are pruned; a crash leaves only scratch files.
import { crashPoint } from "../../platform/crash-point.ts";
import type { MissionContext } from "../mission-context.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { whiteoutsFor } from "../model/paths.ts";
import { encodeSparseMap, encodeWhiteouts, padding } from "../tar/header.ts";
import { encodeTail, tailPath } from "../tar/tail.ts";
import { type Codec, gzipCodec, isLocalOnly, zstdCodec } from "./codec.ts";
import { type Joins, joinContinued, placedAt } from "./continued.ts";
import type { Layer } from "./layer-reader.ts";
import { createLayerWriter, type LayerWriter } from "./layer-writer.ts";
import { type LayerRef, openLayerOf } from "./manifest.ts";
import type { TocEntry } from "./toc-row.ts";

export interface ChainLimits {
  readonly maxLayers: number;
  /** All layers are merged into a new base when the deltas exceed this multiple of the base, */
  readonly maxDeltas: number;
  /** and this many bytes: below that, a new base costs more than it can ever free. */
  readonly minDeltaBytes: number;
}

/** Chosen by simulation: 100 equal checkpoints write 1.69 times their size (1.9 with a limit of 32), 1,000 write 2.58 (2.86). */
export const CHAIN_LIMITS: ChainLimits = { maxLayers: 36, maxDeltas: 0.5, minDeltaBytes: 0 };
/**
 * Live points are many and small, and their records do not repeat the list of layers: 1,000 equal points write 1.8 times
 * their size. What a merge writes stays until the points before it are removed, so a new base waits longer; in a small cell it
 * waits for the next ordinary checkpoint.
 */
export const LIVE_CHAIN_LIMITS: ChainLimits = { maxLayers: 48, maxDeltas: 2, minDeltaBytes: 16 << 20 };
const MIN_MERGED = 8;
const MIN_FREED = 4;
const MERGED_MEMBER_BYTES = 1 << 20;

/** From which layer on to merge; undefined when the chain is fine. Sizes are of layers, lowest first. */
export function planCompaction(
  sizes: readonly number[],
  { maxLayers, maxDeltas, minDeltaBytes }: ChainLimits = CHAIN_LIMITS,
): number | undefined {
  const [base = 0, ...deltas] = sizes;
  const total = deltas.reduce((sum, size) => sum + size, 0);
  const isOutgrown = total > base * maxDeltas && total > minDeltaBytes;
  if (isOutgrown && deltas.length >= MIN_MERGED) return 0;
  if (sizes.length < maxLayers) return undefined;
  // The newest layers whose merging frees many places for few bytes. The power was chosen by simulation: over 1,000
  // checkpoints of equal, mixed, spiky and heavy-tailed sizes no byte is rewritten more than 1.9 times.
  let best = 1;
  let least = Number.POSITIVE_INFINITY;
  let bytes = sizes.at(-1)!;
  for (let from = sizes.length - 2; from > 0; from -= 1) {
    bytes += sizes[from]!;
    const freed = sizes.length - from - 1;
    const price = bytes / freed ** 3;
    if (freed < MIN_FREED || price > least) continue;
    least = price;
    best = from;
  }
  return best;
}

/** Index of the lowest layer that continues files of others. */
export function firstContinued(layers: readonly LayerRef[]): number | undefined {
  const found = layers.findIndex(({ isContinued }) => isContinued);
  return found < 0 ? undefined : found;
}

/**
 * The same content in fewer layers. A file that is continued in the merged layers is stored once: from its first byte there
 * on, or as a whole where `isWhole` is set.
 */
export function compactLayers(
  context: MissionContext,
  layers: readonly LayerRef[],
  { from, isWhole = false }: { readonly from: number; readonly isWhole?: boolean },
): LayerRef[] {
  const merged = layers.slice(from);
  const codec = context.settings.compression === "zstd" ? zstdCodec : gzipCodec;
  const opened = merged.map((ref) => openLayerOf(context.vault, ref));
  try {
    const live = new Map<string, TocEntry>();
    // Each removed path, and whether it belongs to a local-only layer: names of secrets stay there (INV-7).
    const removed = new Map<string, boolean>();
    for (const [i, { toc }] of opened.entries()) {
      for (const path of toc.removed) {
        live.delete(path);
        removed.set(path, isLocalOnly(merged[i]!.mediaType));
      }
      for (const entry of toc.entries) live.set(entry.path, entry);
    }
    for (const path of live.keys()) removed.delete(path);
    using joins = joinContinued(context, layers, { from, isWhole, live });
    const gone = from === 0 ? [] : [...removed.keys()].sort(comparePaths);
    const whiteouts = whiteoutsFor(gone, new Map([...live.values()].map(({ path, type }) => [path, type])));
    const kinds = [false, true].filter((local) => merged.some((ref) => isLocalOnly(ref.mediaType) === local));
    const results = kinds.map((localOnly) => {
      const isOwn = (path: string) => removed.get(path) === localOnly;
      return mergeInto(context, codec, localOnly, {
        sources: opened.filter((_, i) => isLocalOnly(merged[i]!.mediaType) === localOnly),
        live,
        joins,
        removed: gone.filter(isOwn),
        whiteouts: whiteouts.filter(isOwn),
      });
    });
    crashPoint("snapshot.compact.merged");
    return [...layers.slice(0, from), ...results];
  } finally {
    for (const layer of opened) layer[Symbol.dispose]();
  }
}

interface Merge {
  readonly sources: readonly Layer[];
  readonly live: ReadonlyMap<string, TocEntry>;
  readonly joins: Joins;
  readonly removed: readonly string[];
  readonly whiteouts: readonly string[];
}

function mergeInto(context: MissionContext, codec: Codec, localOnly: boolean, merge: Merge): LayerRef {
  const writer = createLayerWriter(context.machine.disk, context.vault, {
    codec,
    localOnly,
    name: `compacted-${localOnly ? "local" : "layer"}`,
  });
  try {
    writer.appendRaw(encodeWhiteouts(merge.whiteouts), 0);
    for (const layer of merge.sources) copyLayer(layer, codec, writer, merge);
    return writer.finish(merge.removed);
  } finally {
    writer.abandon();
  }
}

/** Copies the current entries of one layer: complete members where possible, otherwise entry by entry. */
function copyLayer(layer: Layer, codec: Codec, writer: LayerWriter, { live, joins }: Merge): void {
  const rewriter = createRewriter(layer, writer, joins);
  let next = 0;
  let rawStart = 0;
  const { members } = layer.toc;
  for (let index = 0; index < members.length; index += 1) {
    const member = members[index]!;
    const inside = layer.toc.entries.slice(next, next + member.entries);
    next += member.entries;
    const start = rawStart;
    rawStart += member.raw;
    // Members without a header continue a large file and were handled with it.
    if (inside.length === 0) continue;
    let end = index + 1;
    while (members[end]?.entries === 0 && reaches(inside, rawStart)) {
      rawStart += members[end]!.raw;
      end += 1;
    }
    const isLive = (entry: TocEntry) => live.get(entry.path) === entry;
    // Links of a large file are in a separate member and point at the data before it. They can be copied only if that
    // was copied, which the rewriter tracks.
    const isCopied = (entry: TocEntry) =>
      isLive(entry) && !joins.has(entry) && (entry.at === undefined || entry.at >= start);
    if (layer.codec.name === codec.name && inside.every(isCopied)) {
      rewriter.flush();
      const shift = writer.rawLength - start;
      let from = start;
      for (let i = index; i < end; i += 1) {
        const chunks: Buffer[] = [];
        layer.read(from, members[i]!.raw, (chunk) => chunks.push(chunk));
        writer.append(layer.readMember(i), Buffer.concat(chunks), members[i]!.entries);
        from += members[i]!.raw;
      }
      for (const entry of inside) {
        const moved = entry.at === undefined ? entry : { ...entry, at: entry.at + shift };
        writer.enter([moved]);
        rewriter.placed(moved);
      }
    } else for (const entry of inside) if (isLive(entry)) rewriter.write(entry);
    index = end - 1;
  }
  rewriter.flush();
}

/** Whether the data of an entry continues beyond this offset of the raw stream. */
function reaches(inside: readonly TocEntry[], rawEnd: number): boolean {
  return inside.some((entry) => entry.at !== undefined && entry.at + (entry.length ?? 0) > rawEnd);
}

interface Rewriter {
  /** Writes an entry from its table row and its bytes. */
  write(entry: TocEntry): void;
  /** An entry that was copied: further links of its group point at it. */
  placed(entry: TocEntry): void;
  /** Ends the member under construction. */
  flush(): void;
}

function createRewriter(layer: Layer, writer: LayerWriter, joins: Joins): Rewriter {
  const leaders = new Map<string, TocEntry>();
  let pending: Buffer[] = [];
  let size = 0;
  let count = 0;
  const flush = () => {
    if (size === 0) return;
    const raw = Buffer.concat(pending);
    writer.appendRaw(raw, count);
    pending = [];
    size = 0;
    count = 0;
  };
  const add = (bytes: Buffer) => {
    pending.push(bytes);
    size += bytes.length;
  };
  const placed = (entry: TocEntry) => {
    if (entry.group !== undefined && !leaders.has(entry.group)) leaders.set(entry.group, entry);
  };
  const writeLink = (entry: TocEntry, leader: TocEntry) => {
    const { at, length, after } = leader;
    const link = at === undefined ? entry : placedAt(entry, { at, length: length ?? entry.size, after });
    add(encodeTail(link, { storedSize: 0, linkTo: tailPath(leader.path, after) }));
    writer.enter([link]);
  };
  const writeWhole = (entry: TocEntry) => {
    const map = entry.extents === undefined ? Buffer.alloc(0) : encodeSparseMap(entry.extents, entry.size);
    const { after, length, read } = joins.get(entry) ?? {
      after: entry.after,
      length: entry.length ?? 0,
      read: (use: (chunk: Buffer) => void) => layer.read(entry.at!, entry.length ?? 0, use),
    };
    const moved = placedAt(entry, { at: 0, length, after });
    add(encodeTail(moved, { storedSize: length + map.length }));
    add(map);
    const at = writer.rawLength + size;
    let cut = false;
    if (length > 0) {
      read((chunk) => {
        add(Buffer.from(chunk));
        if (size < MERGED_MEMBER_BYTES) return;
        flush();
        cut = true;
      });
    }
    add(Buffer.alloc(padding(length)));
    // A member that continues a file must not hold anything else: `reaches` relies on it.
    if (cut) flush();
    const row = entry.at === undefined ? entry : { ...moved, at };
    writer.enter([row]);
    placed(row);
  };
  return {
    placed,
    flush,
    write(entry) {
      count += 1;
      const leader = entry.group === undefined ? undefined : leaders.get(entry.group);
      if (leader === undefined) writeWhole(entry);
      else writeLink(entry, leader);
      if (size >= MERGED_MEMBER_BYTES) flush();
    },
  };
}
