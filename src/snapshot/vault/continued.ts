// Continued files in a merge of layers: what a file's parts in the merged layers become. Verified where a whole file is
// written; otherwise the parts are copied, and the file's digest stays what it is.
import type { MissionContext } from "../mission-context.ts";
import { type Entry, type Location, partsOf } from "../model/entry.ts";
import { applyToc, describeMembers } from "./contents.ts";
import { createLayerReader } from "./layer-reader.ts";
import { readPackedToc, unpackToc } from "./layer-table.ts";
import type { LayerRef } from "./live-record.ts";
import { layerSource } from "./manifest.ts";
import type { TocEntry } from "./toc-row.ts";

/** The bytes to store for a row. */
export interface Join {
  /** How many bytes stay in the layers below; undefined for a whole file. */
  readonly after: number | undefined;
  readonly length: number;
  read(use: (chunk: Buffer) => void): void;
}

/** The rows that are not stored unchanged. */
export interface Joins extends Disposable {
  has(row: TocEntry): boolean;
  get(row: TocEntry): Join | undefined;
}

export interface JoinOptions {
  /** The first layer that is merged. */
  readonly from: number;
  readonly isWhole: boolean;
  /** The current rows of the merged layers. */
  readonly live: ReadonlyMap<string, TocEntry>;
}

/** Decides what a merge stores for continued files. */
export function joinContinued(
  { vault }: Pick<MissionContext, "vault">,
  layers: readonly LayerRef[],
  { from, isWhole, live }: JoinOptions,
): Joins {
  const joins = new Map<TocEntry, Join>();
  const rows = [...live.values()].filter(({ after }) => after !== undefined);
  if (rows.length === 0) return { has: () => false, get: () => undefined, [Symbol.dispose]() {} };
  const paths = new Set(rows.map(({ path }) => path));
  const tocs = layers.map((layer) => {
    const source = layerSource(vault, layer);
    return unpackToc(source, readPackedToc(source), paths);
  });
  const listing = new Map<string, Entry>();
  for (const [i, toc] of tocs.slice(0, from).entries()) applyToc(listing, toc, layers[i]!.digest);
  const below = new Map(listing);
  for (const [i, toc] of tocs.slice(from).entries()) applyToc(listing, toc, layers[from + i]!.digest);
  const reader = createLayerReader(describeMembers(vault, layers, tocs));
  for (const row of rows) {
    const entry = listing.get(row.path)!;
    const parts = partsOf(entry);
    const kept = isWhole ? 0 : sharedParts(parts, below.get(row.path));
    const added = parts.slice(kept);
    if (kept > 0 && added.length === 1) continue;
    joins.set(row, {
      after: kept === 0 ? undefined : lengthOf(parts.slice(0, kept)),
      length: lengthOf(added),
      read(use) {
        if (kept === 0) reader.read(entry, use);
        else for (const { layer, at, length } of added) reader.readRaw(layer, at, length, use);
      },
    });
  }
  return {
    has: (row) => joins.has(row),
    get: (row) => joins.get(row),
    [Symbol.dispose]: () => reader[Symbol.dispose](),
  };
}

/** How many parts of a file are those of the version below; 0 when it does not continue that one. */
function sharedParts(parts: readonly Location[], below: Entry | undefined): number {
  const lower = below === undefined ? [] : partsOf(below);
  const isSame = (part: Location, i: number) =>
    part.layer === parts[i]?.layer && part.at === parts[i].at && part.length === parts[i].length;
  return lower.length < parts.length && lower.every(isSame) ? lower.length : 0;
}

function lengthOf(parts: readonly Location[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

/** The row of a file whose bytes are stored elsewhere. */
export function placedAt(
  { after: _, ...entry }: TocEntry,
  { after, ...place }: { readonly at: number; readonly length: number; readonly after: number | undefined },
): TocEntry {
  return { ...entry, ...place, ...(after !== undefined && { after }) };
}
