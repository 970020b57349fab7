// A checkpoint opened for restore: its listing, validated as untrusted input, and the members of its layers. Opening
// verifies only the digests of the tables; rows are decoded when a listing is needed. Two checkpoints that share their
// lower layers can differ only in the paths of the upper ones, so only those rows are decoded.
import { LazarusError } from "../../platform/errors.ts";
import type { Entry, Listing } from "../model/entry.ts";
import { EMPTY_TREE, findFaults, type TreeFault } from "../vault/check-tree.ts";
import { applyToc, describeMembers } from "../vault/contents.ts";
import type { LayerMembers } from "../vault/layer-reader.ts";
import { type PackedToc, readPackedToc, unpackToc, VERIFY_HINT } from "../vault/layer-table.ts";
import { type Checkpoint, type LayerRef, layerSource } from "../vault/manifest.ts";
import type { Toc } from "../vault/toc.ts";
import type { Vault } from "../vault/vault.ts";
import { ancestors } from "./scope.ts";

/** A checkpoint whose layers exist and whose tables match their digests. */
export interface OpenCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly tables: readonly Table[];
}

interface Table {
  readonly ref: LayerRef;
  readonly packed: PackedToc;
}

export interface Source {
  readonly checkpoint: Checkpoint;
  readonly listing: Listing;
  readonly layers: readonly LayerMembers[];
}

/** Reads each table at most once. */
export function createTableReader(vault: Vault): (checkpoint: Checkpoint) => OpenCheckpoint {
  const known = new Map<string, PackedToc>();
  return (checkpoint) => ({
    checkpoint,
    tables: checkpoint.layers.map((ref) => {
      const packed = known.get(ref.digest) ?? readPackedToc(layerSource(vault, ref));
      known.set(ref.digest, packed);
      return { ref, packed };
    }),
  });
}

/** Decodes the whole checkpoint. */
export function openSource(vault: Vault, { checkpoint, tables }: OpenCheckpoint): Source {
  const tocs = tables.map(({ ref, packed }) => unpackToc(layerSource(vault, ref), packed));
  refuseFaults(findFaults(EMPTY_TREE, tocs), checkpoint.ref.id);
  const listing = applyAll(new Map(), tables, tocs);
  return { checkpoint, listing, layers: describeMembers(vault, checkpoint.layers, tocs) };
}

/** Above this many paths, selecting rows is no faster than decoding all. */
const MAX_SELECTED = 20_000;

/**
 * The listings of two checkpoints, reduced to what can differ: every path that differs, its parent directories, all hard
 * links, and the `selected` paths. Complete when the checkpoints share no layer.
 */
export function openPair(
  vault: Vault,
  target: OpenCheckpoint,
  now: OpenCheckpoint,
  selected: readonly string[],
): { target: Source; now: Source } {
  const shared = commonLength(target.tables, now.tables);
  const unpackAll = (tables: readonly Table[], only?: ReadonlySet<string>) =>
    tables.map(({ ref, packed }) => unpackToc(layerSource(vault, ref), packed, only));
  const upper = { target: unpackAll(target.tables.slice(shared)), now: unpackAll(now.tables.slice(shared)) };
  const touched = new Set(selected);
  for (const toc of [...upper.target, ...upper.now]) {
    for (const { path } of toc.entries) touched.add(path);
    for (const path of toc.removed) touched.add(path);
  }
  const few = touched.size <= MAX_SELECTED;
  const decoded = new Set(few ? [...touched].flatMap((path) => [path, ...ancestors(path)]) : []);
  const lower = unpackAll(target.tables.slice(0, shared), few ? decoded : undefined);
  const checked = few ? decoded : undefined;
  for (const [side, own] of [[target, upper.target] as const, [now, upper.now] as const])
    refuseFaults(findFaults(EMPTY_TREE, [...lower, ...own], checked), side.checkpoint.ref.id);
  const base = applyAll(new Map(), target.tables, lower);
  const source = ({ checkpoint, tables }: OpenCheckpoint, own: readonly Toc[]): Source => ({
    checkpoint,
    listing: applyAll(new Map(base), tables.slice(shared), own),
    layers: describeMembers(vault, checkpoint.layers, [...lower, ...own]),
  });
  return { target: source(target, upper.target), now: source(now, upper.now) };
}

function commonLength(a: readonly Table[], b: readonly Table[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length]!.ref.digest === b[length]!.ref.digest)
    length += 1;
  return length;
}

function applyAll(
  listing: Map<string, Entry>,
  tables: readonly Table[],
  tocs: readonly Toc[],
): Map<string, Entry> {
  for (const [i, toc] of tocs.entries()) applyToc(listing, toc, tables[i]!.ref.digest);
  return listing;
}

/** Every parent of an entry must be a directory: a symlink could lead out of the cell. */
function refuseFaults([fault]: readonly TreeFault[], id: string): void {
  if (fault === undefined) return;
  const { path, problem } = fault;
  throw new LazarusError(
    "LAYER_HOSTILE",
    `checkpoint ${id} cannot be restored: ${JSON.stringify(path)} ${problem}; nothing was restored`,
    { hint: VERIFY_HINT, details: { path, checkpoint: id } },
  );
}
