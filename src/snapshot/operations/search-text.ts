// Searches the text of files in checkpoints. Every distinct content is read once, in the order in which it is stored.
import { isUtf8 } from "node:buffer";
import type { MissionContext } from "../mission-context.ts";
import { type Entry, partsOf } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { describeMembers } from "../vault/contents.ts";
import { createLayerReader } from "../vault/layer-reader.ts";
import { readToc } from "../vault/layer-table.ts";
import { type LayerRef, layerSource, readCheckpoint } from "../vault/manifest.ts";
import type { PathHistory, Version } from "./path-history.ts";

/** A line that matches. */
export interface Match {
  readonly line: number;
  /** Shortened around the match. */
  readonly text: string;
}

export interface Found {
  readonly version: Version;
  /** Empty for a binary file that contains the text. */
  readonly matches: readonly Match[];
}

export interface SearchResult {
  /** By path, the newest version first. */
  readonly found: readonly Found[];
  readonly files: number;
  /** Too large to be searched. */
  readonly skipped: readonly Version[];
}

/** A larger file is not searched: it is read whole. */
const LIMIT_BYTES = 64 << 20;
const LINE_LIMIT = 300;

/** Searches every version in the history for a line that `expression` matches. */
export function searchText(context: MissionContext, history: PathHistory, expression: RegExp): SearchResult {
  const all = [...history.versions.values()].flat();
  const files = all.filter((version): version is FileVersion => version.entry?.location !== undefined);
  const skipped = files.filter(({ entry }) => entry.size > LIMIT_BYTES);
  const searched = files.filter(({ entry }) => entry.size <= LIMIT_BYTES).sort(byPlace);
  using reader = openLayers(context, history, searched);
  const known = new Map<string, readonly Match[] | undefined>();
  const found: Found[] = [];
  for (const version of searched) {
    const { sha256 } = version.entry;
    if (!known.has(sha256)) {
      const parts: Buffer[] = [];
      reader.read(version.entry, (chunk) => parts.push(Buffer.from(chunk)));
      known.set(sha256, matchesIn(Buffer.concat(parts), expression));
    }
    const matches = known.get(sha256);
    if (matches !== undefined) found.push({ version, matches });
  }
  found.sort((a, b) => comparePaths(a.version.path, b.version.path) || newestFirst(a.version, b.version));
  return { found, files: searched.length, skipped };
}

type FileVersion = Version & { readonly entry: Entry & Required<Pick<Entry, "location">> };

function byPlace(a: FileVersion, b: FileVersion): number {
  const [x, y] = [a.entry.location, b.entry.location];
  return x.layer === y.layer ? x.at - y.at : x.layer < y.layer ? -1 : 1;
}

function newestFirst(a: Version, b: Version): number {
  return b.first.createdAtMs - a.first.createdAtMs;
}

/** Reads from the layers that hold these versions. */
function openLayers(
  { vault }: MissionContext,
  { checkpoints }: PathHistory,
  versions: readonly FileVersion[],
): ReturnType<typeof createLayerReader> {
  const wanted = new Set(versions.flatMap(({ entry }) => partsOf(entry).map(({ layer }) => layer)));
  const refs = new Map<string, LayerRef>();
  for (const ref of checkpoints) {
    if (refs.size === wanted.size) break;
    for (const layer of readCheckpoint(vault, ref).layers)
      if (wanted.has(layer.digest)) refs.set(layer.digest, layer);
  }
  const layers = [...refs.values()];
  const tocs = layers.map((ref) => readToc(layerSource(vault, ref)));
  return createLayerReader(describeMembers(vault, layers, tocs));
}

/** Undefined when nothing matches. */
function matchesIn(bytes: Buffer, expression: RegExp): readonly Match[] | undefined {
  const isText = !bytes.subarray(0, 8000).includes(0) && isUtf8(bytes);
  const text = bytes.toString(isText ? "utf8" : "latin1");
  if (!isText) return expression.test(text) ? [] : undefined;
  const matches: Match[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    const at = line.search(expression);
    if (at >= 0) matches.push({ line: i + 1, text: shortenAround(line.replace(/\r$/, ""), at) });
  }
  return matches.length === 0 ? undefined : matches;
}

function shortenAround(line: string, at: number): string {
  if (line.length <= LINE_LIMIT) return line;
  const from = Math.max(0, Math.min(at - LINE_LIMIT / 3, line.length - LINE_LIMIT));
  const to = from + LINE_LIMIT;
  return `${from > 0 ? "…" : ""}${line.slice(from, to)}${to < line.length ? "…" : ""}`;
}
