// The gate that every new checkpoint passes before it is published (INV-1, INV-6): the tables of its new layers are read back
// as a restore would read them, compared with what was packed, and checked together with the tree below them. Paths that a
// restore would refuse are removed by one more layer and reported as flaws. O(changes), not O(cell).
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CapturedItem } from "../model/capture-item.ts";
import type { Flaw } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { someParent, whiteoutsFor } from "../model/paths.ts";
import { createSecretMatcher } from "../path-patterns.ts";
import { countRows, NO_ROWS, type RowTree, type StatRows, treeOf } from "../scan/stat-rows.ts";
import { encodeWhiteouts } from "../tar/header.ts";
import { findFaults, mergeTables, scanTree, type TreeChanges, type TreeFault } from "../vault/check-tree.ts";
import { codecFor } from "../vault/codec.ts";
import { type LayerSource, readToc, scanToc } from "../vault/layer-table.ts";
import { createLayerWriter } from "../vault/layer-writer.ts";
import { type LayerRef, layerSource } from "../vault/manifest.ts";
import type { Toc } from "../vault/toc.ts";

/** New layers, not yet published, and what they were made from. */
export interface Candidate {
  readonly layers: readonly LayerRef[];
  readonly captured: ReadonlyMap<string, CapturedItem>;
  /** The rows of the checkpoint that they are added to. */
  readonly below: StatRows;
  /** The rows of the new checkpoint. */
  readonly rows: StatRows;
}

export interface Passed {
  readonly layers: readonly LayerRef[];
  /** What was left out. */
  readonly flaws: readonly Flaw[];
  /** Whether the rows list exactly what the layers hold. */
  readonly areRowsExact: boolean;
}

/** Throws when the layers cannot be read back; then nothing may be published. */
export function passGate(context: MissionContext, candidate: Candidate): Passed {
  const { layers, below } = candidate;
  if (layers.length === 0) return { layers, flaws: [], areRowsExact: true };
  const count = countRows(candidate.rows);
  if (below === NO_ROWS && isSoundTree(context, candidate))
    return { layers, flaws: [], areRowsExact: count === candidate.captured.size };
  const tree = treeOf(below);
  const tables = layers.map((layer) => readBack(context, layer));
  const changes = mergeTables(tables);
  const faults = [...findFaults(tree, tables), ...findMismatches(changes, candidate.captured)];
  if (faults.length === 0) return { layers, flaws: [], areRowsExact: count === expectedCount(changes, tree) };
  const removed = pathsToRemove(faults, changes, tree);
  const repairs = removePaths(context, [...removed.keys()]);
  const left = findFaults(tree, [...tables, ...repairs.map((layer) => readBack(context, layer))]);
  if (left.length > 0) throw notRestorable(context, left[0]!);
  const flaws = [...removed].map(([path, problem]): Flaw => {
    return { path, kind: "skipped", reason: `left out, because it could not be restored: it ${problem}` };
  });
  return { layers: [...layers, ...repairs], flaws, areRowsExact: false };
}

function isSoundTree(context: MissionContext, { layers, captured }: Candidate): boolean {
  const scan = scanTree(captured);
  for (const layer of layers)
    scan.endTable(readingBack(context, layer, (source) => scanToc(source, scan)).members);
  return scan.isSound();
}

/** Throws unless the new layers describe exactly the content of the old ones. */
export function passCompaction(
  context: MissionContext,
  before: readonly LayerRef[],
  after: readonly LayerRef[],
): void {
  const old = mergeTables(before.map((layer) => readBack(context, layer)));
  const merged = mergeTables(after.map((layer) => readBack(context, layer)));
  for (const [path, entry] of old) {
    const now = merged.get(path);
    if (now?.sha256 !== entry?.sha256 || now?.type !== entry?.type)
      throw notRestorable(context, { path, problem: "is lost when layers are merged" });
  }
}

function readBack(context: MissionContext, layer: LayerRef): Toc {
  return readingBack(context, layer, readToc);
}

function readingBack<T>(context: MissionContext, layer: LayerRef, read: (source: LayerSource) => T): T {
  try {
    return read(layerSource(context.vault, layer));
  } catch (error) {
    const known = asLazarusError(error, `reading back layer ${layer.digest}`, context.vault.root);
    throw new LazarusError(known.code, `${known.message}; it was just written, and no checkpoint was made`, {
      hint: `check the disk of ${context.vault.root}, then lazarus checkpoint ${context.mission}`,
      details: known.details,
      cause: known.cause,
    });
  }
}

function notRestorable({ mission }: MissionContext, { path, problem }: TreeFault): LazarusError {
  return new LazarusError(
    "CHECKPOINT_DAMAGED",
    `no checkpoint of ${mission} was made, because it could not be restored: ${JSON.stringify(path)} ${problem}`,
    { hint: `lazarus checkpoint ${mission}`, details: { path } },
  );
}

/** Entries that are not what was packed. */
function findMismatches(changes: TreeChanges, captured: ReadonlyMap<string, CapturedItem>): TreeFault[] {
  const faults: TreeFault[] = [];
  for (const [path, entry] of changes) {
    if (entry === undefined) continue;
    const packed = captured.get(path)?.entry;
    if (packed?.type !== entry.type || packed.sha256 !== entry.sha256)
      faults.push({ path, problem: "differs from what was read" });
  }
  return faults;
}

function expectedCount(changes: TreeChanges, tree: RowTree): number {
  let count = tree.count;
  for (const [path, entry] of changes)
    count += Number(entry !== undefined) - Number(tree.typeOf(path) !== undefined);
  return count;
}

/** The faulty paths and everything below them, with the problem of each. */
function pathsToRemove(
  faults: readonly TreeFault[],
  changes: TreeChanges,
  tree: RowTree,
): Map<string, string> {
  const faulty = new Map(faults.map(({ path, problem }) => [path, problem]));
  const removed = new Map(faulty);
  const problemAbove = (path: string): string | undefined => {
    let problem: string | undefined;
    someParent(path, (parent) => {
      problem = faulty.get(parent);
      return problem !== undefined;
    });
    return problem;
  };
  const below = [...changes].flatMap(([path, entry]) => (entry === undefined ? [] : [path]));
  for (const path of [...below, ...[...faulty.keys()].flatMap((each) => tree.allBelow(each))]) {
    const problem = faulty.get(path) ?? problemAbove(path);
    if (problem !== undefined) removed.set(path, problem);
  }
  return removed;
}

/** Layers that remove the paths; names of key files stay in a local-only layer (INV-7). */
function removePaths(context: MissionContext, paths: readonly string[]): LayerRef[] {
  const isSecret = createSecretMatcher(context.settings.secrets);
  const codec = codecFor(context.settings.compression);
  return [false, true].flatMap((localOnly) => {
    const removed = paths.filter((path) => isSecret(path) === localOnly).sort(comparePaths);
    if (removed.length === 0) return [];
    const options = { codec, localOnly, name: localOnly ? "repair-local" : "repair" };
    const writer = createLayerWriter(context.machine.disk, context.vault, options);
    try {
      writer.appendRaw(encodeWhiteouts(whiteoutsFor(removed, new Map())), 0);
      return [writer.finish(removed)];
    } finally {
      writer.abandon();
    }
  });
}
