// Fills an empty directory with a checkpoint or part of it: files on all cores in the order in which their bytes are stored,
// each batch after its directories, then links, and directory times last. A killed restore can be repeated: a marker in the
// directory names the checkpoint it was being filled with.
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, sep } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, LazarusError, quietly, systemErrorCode } from "../../platform/errors.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { Progress } from "../mission-context.ts";
import { type Entry, type Flaw, storedLength } from "../model/entry.ts";
import { OpenTree } from "../model/open-tree.ts";
import { isTooLong, parentPath, systemPath } from "../model/path-bytes.ts";
import type { FileToMake } from "./batches.ts";
import { withConsequence } from "./damage-hint.ts";
import { detectCapabilities, finishDirectory, makeSpecial, setMetadata } from "./make-path.ts";
import { makeAllFiles } from "./pool.ts";
import { ancestors, type Scope } from "./scope.ts";
import type { Source } from "./source.ts";

export interface FillOptions {
  readonly directory: string;
  readonly scope: Scope;
  readonly onProgress: (progress: Progress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface FillResult {
  readonly paths: number;
  readonly files: number;
  readonly bytes: number;
  readonly flaws: readonly Flaw[];
}

/** In the directory while it is being filled; a name that is never in a checkpoint. */
const MARKER = ".lazarus-unfinished";

/** Refuses a directory that is neither empty nor an unfinished restore of the same checkpoint. */
export function prepareDirectory(directory: string, id: string): { resumed: boolean } {
  try {
    makeDirectories(directory);
    const names = readdirSync(directory);
    const resumed = names.length > 0 && readMarker(directory) === id;
    if (names.length > 0 && !resumed) {
      throw new LazarusError("TARGET_NOT_EMPTY", `${directory} is not empty; nothing was restored`, {
        hint: `choose a new directory, or list it: ls -A ${directory}`,
        details: { directory },
      });
    }
    if (!resumed) writeFileSync(join(directory, MARKER), `${id}\n`, { mode: 0o600 });
    return { resumed };
  } catch (error) {
    if (systemErrorCode(error) === "ENOTDIR" || systemErrorCode(error) === "EEXIST") {
      throw new LazarusError("TARGET_NOT_EMPTY", `${directory} is not a directory`, {
        hint: `ls -ld ${directory}`,
      });
    }
    throw asLazarusError(error, `preparing ${directory}`, directory);
  }
}

/** Not Node's `recursive`: that never returns where nothing can be created, as in /proc. */
function makeDirectories(path: string): void {
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "EEXIST") return;
    const parent = dirname(path);
    if (code !== "ENOENT" || existsSync(parent)) throw error;
    makeDirectories(parent);
    mkdirSync(path, 0o700);
  }
}

function readMarker(directory: string): string | undefined {
  return quietly(() => readFileSync(join(directory, MARKER), "utf8").trim());
}

/** Fills a prepared directory. */
export async function fillDirectory(
  source: Source,
  options: FillOptions,
  resumed: boolean,
): Promise<FillResult> {
  const { directory } = options;
  try {
    return await fill(source, options, resumed);
  } catch (error) {
    if (!resumed) removeContents(directory);
    const state = resumed ? "it is still unfinished" : "it was emptied";
    throw withConsequence(error, `restoring into ${directory}`, directory, state);
  }
}

async function fill(source: Source, options: FillOptions, resumed: boolean): Promise<FillResult> {
  const { directory } = options;
  const flaws: Flaw[] = [];
  const capabilities = detectCapabilities();
  const { directories, files, links, specials } = groupByKind(source, options, flaws);
  using tree = new OpenTree(directory);
  const cleared = (path: string) => {
    if (resumed) rmSync(systemPath(tree.at(path)), { force: true });
    return tree.at(path);
  };
  crashPoint("snapshot.restore.to-marked");
  const makeDirectory = directoryMaker(tree, directories, resumed);
  let bytes = 0;
  const total = files.reduce((sum, { entry }) => sum + storedLength(entry), 0);
  const onDone = (more: number) => {
    bytes += more;
    options.onProgress({ phase: "restoring", done: bytes, total, unit: "bytes" });
  };
  const onNext = (batch: readonly FileToMake[]) => {
    for (const { path } of batch) makeDirectory(parentPath(path));
  };
  const events = { onNext, onDone, signal: options.signal };
  const task = { root: directory, replace: resumed };
  flaws.push(...(await makeAllFiles(task, files, source.layers, events)));
  crashPoint("snapshot.restore.to-files-made");
  for (const { path } of directories) makeDirectory(path);
  crashPoint("snapshot.restore.to-directories-made");
  for (const { entry, leader } of links)
    linkSync(systemPath(tree.at(leader)), systemPath(cleared(entry.path)));
  for (const entry of specials) makeSpecial(cleared(entry.path), entry, capabilities, flaws);
  crashPoint("snapshot.restore.to-links-made");
  // The top directory last: removing the marker changes its time.
  for (const entry of directories.toReversed()) {
    if (entry.path === ".") rmSync(join(directory, MARKER), { force: true });
    // An earlier attempt may have made the directory and set a mode that keeps this user out.
    const set = resumed || entry.path === "." ? setMetadata : finishDirectory;
    set(entry.path === "." ? directory : tree.at(entry.path), entry, capabilities, flaws);
  }
  rmSync(join(directory, MARKER), { force: true });
  crashPoint("snapshot.restore.to-done");
  const paths = directories.length + files.length + links.length + specials.length;
  return { paths, files: files.length + links.length, bytes, flaws };
}

interface EntriesByKind {
  /** Parents first. */
  readonly directories: readonly Entry[];
  readonly files: readonly FileToMake[];
  /** Hard links to a file in `files`. */
  readonly links: readonly { entry: Entry; leader: string }[];
  readonly specials: readonly Entry[];
}

const TOO_LONG = "its path is too long here: restore it in place, or into a directory with a shorter name";

function groupByKind({ listing }: Source, { scope, directory }: FillOptions, flaws: Flaw[]): EntriesByKind {
  const above = new Set(scope.only?.flatMap(ancestors));
  const directories: Entry[] = [];
  const files: FileToMake[] = [];
  const links: { entry: Entry; leader: string }[] = [];
  const specials: Entry[] = [];
  const leaders = new Map<string, string>();
  for (const [path, entry] of listing) {
    if (!scope.has(path) && !(entry.type === "directory" && above.has(path))) continue;
    if (isTooLong(`${directory}/${path}`)) flaws.push({ path, kind: "skipped", reason: TOO_LONG });
    else if (entry.type === "directory") directories.push(entry);
    else if (entry.type !== "file") specials.push(entry);
    else {
      const leader = entry.group === undefined ? undefined : leaders.get(entry.group);
      if (leader !== undefined) links.push({ entry, leader });
      else {
        files.push({ path, entry });
        if (entry.group !== undefined) leaders.set(entry.group, path);
      }
    }
  }
  directories.sort((a, b) => (a.path === "." ? -1 : b.path === "." ? 1 : a.path < b.path ? -1 : 1));
  return { directories, files, links, specials };
}

/** Makes a directory of the checkpoint and those above it, each once: while earlier files are made, not before all of them. */
function directoryMaker(
  tree: OpenTree,
  directories: readonly Entry[],
  resumed: boolean,
): (path: string) => void {
  const missing = new Set(directories.map(({ path }) => path));
  missing.delete(".");
  const make = (path: string) => {
    if (!missing.delete(path)) return;
    make(parentPath(path));
    makeDirectoryAt(tree.at(path), resumed);
  };
  return make;
}

function makeDirectoryAt(path: string, resumed: boolean): void {
  try {
    mkdirSync(systemPath(path), 0o700);
  } catch (error) {
    const exists =
      resumed && systemErrorCode(error) === "EEXIST" && lstatSync(systemPath(path)).isDirectory();
    if (!exists) throw error;
  }
}

function removeContents(directory: string): void {
  for (const name of readdirSync(directory, { encoding: "buffer" })) {
    removeTree(Buffer.concat([Buffer.from(directory + sep), name]));
  }
}
