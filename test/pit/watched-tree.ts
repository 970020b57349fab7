// A directory under the real watcher, and the check of its sets: everything that the independent lister sees as changed must be in
// them. list_tree.py shares no code with Lazarus.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTreeWatcher, type TakenPaths, type TreeWatcher } from "../../src/pit/watch/tree-watcher.ts";
import { encodePath } from "../../src/snapshot/model/path-bytes.ts";
import { removeTree } from "../snapshot/lab.ts";
import { listTree } from "../snapshot/list-tree.ts";

export interface WatchedTreeLab extends AsyncDisposable {
  readonly watcher: TreeWatcher;
  /** Contains `root` and `outside`. */
  readonly directory: string;
  /** The directory that is watched. */
  readonly root: string;
  /** Next to it, for moving in and out. */
  readonly outside: string;
  /** Takes the set of changed paths. */
  take(): Promise<TakenPaths>;
  /** The tree as the lister sees it, by path. */
  list(): Map<string, Listed>;
}

export interface Listed {
  readonly line: string;
  readonly links: readonly string[];
}

/** The set is empty when this resolves. */
export async function createWatchedTree(
  ignore: readonly string[] = [],
  prepare: (root: string) => void = () => {},
): Promise<WatchedTreeLab> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-watched-")));
  const [root, outside] = [join(directory, "cell"), join(directory, "outside")];
  for (const each of [root, outside]) mkdirSync(each);
  prepare(root);
  const watcher = openTreeWatcher({ cookies: join(directory, "cookies") });
  watcher.add("m1", { roots: [{ path: root, prefix: "" }], ignore });
  const first = await watcher.take("m1");
  if (!first.unknown?.includes("before the watch began")) throw new Error(`not watched: ${first.unknown}`);
  return {
    watcher,
    directory,
    root,
    outside,
    take: () => watcher.take("m1"),
    list: () => new Map(listTree(root).map(parseLine)),
    async [Symbol.asyncDispose]() {
      await watcher[Symbol.asyncDispose]();
      removeTree(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function parseLine(line: string): [string, Listed] {
  const { path, links = [] } = JSON.parse(line);
  return [path, { line, links }];
}

/** Changed paths that no set names. Empty when one of the sets is unknown. */
export function findUnreported(
  before: ReadonlyMap<string, Listed>,
  after: ReadonlyMap<string, Listed>,
  sets: readonly TakenPaths[],
): string[] {
  if (sets.some(({ unknown }) => unknown !== null)) return [];
  const paths = new Set(sets.flatMap((set) => set.paths.map(showPath)));
  const trees = new Set(sets.flatMap((set) => set.trees.map(showPath)));
  const parents = (path: string) =>
    path.split("/").map((_, index, parts) => parts.slice(0, index + 1).join("/"));
  const isNamed = (path: string) => paths.has(path) || parents(path).some((parent) => trees.has(parent));
  // One name of a file stands for all of its names.
  const isCovered = (path: string) =>
    [path, ...(before.get(path)?.links ?? []), ...(after.get(path)?.links ?? [])].some(isNamed) ||
    // A directory that was removed, or replaced in between, stands for its contents.
    (!after.has(path) && parents(path).some((parent) => paths.has(parent)));
  const all = new Set([...before.keys(), ...after.keys()]);
  return [...all].filter((path) => before.get(path)?.line !== after.get(path)?.line && !isCovered(path));
}

/** As list_tree.py writes paths. */
export function showPath(path: string): string {
  return [...encodePath(path)]
    .map((byte) =>
      byte > 0x20 && byte < 0x7f && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, "0")}`,
    )
    .join("");
}
