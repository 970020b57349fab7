// The audit of a watch: a point that walked the whole cell is compared with what the watch reported. A path that changed
// although the watch did not report it was missed, unless no watch can see such a change: a write through a hard link outside
// the cell, through mapped memory, or on a file system that is mounted in the cell.
import { lstatSync } from "node:fs";
import type { MissionContext } from "../../snapshot/mission-context.ts";
import { diskPath, outsidePaths, rootOf } from "../../snapshot/model/cell-tree.ts";
import { compareListings } from "../../snapshot/model/diff.ts";
import type { Entry } from "../../snapshot/model/entry.ts";
import { systemPath } from "../../snapshot/model/path-bytes.ts";
import { someParent } from "../../snapshot/model/paths.ts";
import { findMappedFiles } from "../../snapshot/scan/mapped-files.ts";
import { openContents } from "../../snapshot/vault/contents.ts";
import { readToc } from "../../snapshot/vault/layer-table.ts";
import { type LayerRef, layerSource } from "../../snapshot/vault/manifest.ts";
import type { TakenPaths } from "../watch/tree-watcher.ts";

/** Changes that the watch did not report. */
export interface Unseen {
  /** The watch should have reported them. */
  readonly missed: readonly string[];
  /** No watch can report them. */
  readonly invisible: readonly string[];
}

/** Whether a set names a path. What was in a directory that was removed or moved is named by the directory. */
export function createReportTest({ unknown, paths, trees }: TakenPaths) {
  const [known, below] = [new Set(paths), new Set(trees)];
  return (path: string, { isGone = false } = {}): boolean =>
    unknown !== null ||
    known.has(path) ||
    below.has(path) ||
    below.has(".") ||
    someParent(path, (parent) => below.has(parent) || (isGone && known.has(parent)));
}

/** `before` and `after` are the layers of the point that the set is based on, and of the one that walked everything. */
export function findUnseen(
  context: MissionContext,
  layers: { readonly before: readonly LayerRef[]; readonly after: readonly LayerRef[] },
  reports: readonly TakenPaths[],
): Unseen {
  const { before, after } = layers;
  // Compaction has merged layers: unchanged paths would seem to have changed.
  if (before.some(({ digest }, index) => after[index]?.digest !== digest))
    return { missed: [], invisible: [] };
  const tests = reports.map(createReportTest);
  const unseen: string[] = [];
  for (const ref of after.slice(before.length)) {
    const { removed, entries } = readToc(layerSource(context.vault, ref));
    unseen.push(...removed.filter((path) => !tests.some((test) => test(path, { isGone: true }))));
    unseen.push(...entries.map(({ path }) => path).filter((path) => !tests.some((test) => test(path))));
  }
  // A layer may also hold what is unchanged.
  const changed = unseen.length === 0 ? [] : confirmChanges(context, layers, new Set(unseen));
  return sortUnseen(context, changed);
}

function confirmChanges(
  { vault }: MissionContext,
  { before, after }: { readonly before: readonly LayerRef[]; readonly after: readonly LayerRef[] },
  paths: ReadonlySet<string>,
): string[] {
  const [old, now] = [before, after].map((refs) => {
    using contents = openContents(vault, refs);
    return new Map<string, Entry>([...contents.listing].filter(([path]) => paths.has(path)));
  });
  return compareListings(old!, now!).map(({ path }) => path);
}

function sortUnseen({ tree }: MissionContext, paths: readonly string[]): Unseen {
  const missed: string[] = [];
  const invisible: string[] = [];
  if (paths.length === 0) return { missed, invisible };
  const roots = [rootOf(tree), ...outsidePaths(tree)];
  const devices = new Set(roots.map((root) => lstatSync(root).dev));
  const mapped = findMappedFiles(roots).inodes;
  for (const path of paths) {
    const stat = lstatSync(systemPath(diskPath(tree, path)), { throwIfNoEntry: false });
    const isInvisible =
      stat !== undefined &&
      ((stat.isFile() && stat.nlink > 1) || mapped.has(stat.ino) || !devices.has(stat.dev));
    (isInvisible ? invisible : missed).push(path);
  }
  return { missed, invisible };
}
