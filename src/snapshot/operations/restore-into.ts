// Restores a checkpoint, or part of it, into an empty directory, as fast as the disk takes it: directories first, files
// by all cores in the order in which their bytes lie, links, and directory times last. A killed one can be run again: a
// mark in the directory says that what is in it is unfinished and whose it is.
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
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { removeTree } from "../../platform/remove-tree.ts";
import type { Progress } from "../mission-context.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { isTooLong, systemPath } from "../model/path-bytes.ts";
import type { FileOrder } from "../restore/batches.ts";
import { withConsequence } from "../restore/damage-hint.ts";
import { detectCapabilities, makeSpecial, setMetadata } from "../restore/make-path.ts";
import { makeAllFiles } from "../restore/pool.ts";
import { ancestors, type Scope } from "../restore/scope.ts";
import type { Source } from "../restore/source.ts";

export interface RestoreIntoOptions {
  readonly directory: string;
  readonly scope: Scope;
  readonly onProgress: (progress: Progress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface RestoreIntoResult {
  readonly paths: number;
  readonly files: number;
  readonly bytes: number;
  readonly flaws: readonly Flaw[];
}

/** In the directory while it is being filled; the name is Lazarus' own and never in a checkpoint. */
const MARK = ".lazarus-unfinished";

/** Refuses a directory that holds anything but an unfinished restore of the same checkpoint. */
export function prepareDirectory(directory: string, id: string): { again: boolean } {
  try {
    makeDirectories(directory);
    const names = readdirSync(directory);
    const again = names.length > 0 && readMark(directory) === id;
    if (names.length > 0 && !again) {
      throw new LazarusError("TARGET_NOT_EMPTY", `${directory} is not empty; nothing was restored into it`, {
        hint: `choose a new directory, or look at it with: ls -A ${directory}`,
        details: { directory },
      });
    }
    if (!again) writeFileSync(join(directory, MARK), `${id}\n`, { mode: 0o600 });
    return { again };
  } catch (error) {
    if (systemErrorCode(error) === "ENOTDIR" || systemErrorCode(error) === "EEXIST") {
      throw new LazarusError("TARGET_NOT_EMPTY", `${directory} is not a directory`, {
        hint: `ls -ld ${directory}`,
      });
    }
    throw asLazarusError(error, `preparing ${directory}`, directory);
  }
}

/** Not Node's own `recursive`: where a directory exists and nothing can be made in it, as in /proc, that never ends. */
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

function readMark(directory: string): string | undefined {
  try {
    return readFileSync(join(directory, MARK), "utf8").trim();
  } catch {
    return undefined;
  }
}

/** Fills a prepared directory. */
export async function fillDirectory(
  source: Source,
  options: RestoreIntoOptions,
  again: boolean,
): Promise<RestoreIntoResult> {
  const { directory } = options;
  try {
    return await fill(source, options, again);
  } catch (error) {
    if (!again) empty(directory);
    const state = again ? "it is still unfinished" : "it was emptied again";
    throw withConsequence(error, `restoring into ${directory}`, directory, state);
  }
}

async function fill(source: Source, options: RestoreIntoOptions, again: boolean): Promise<RestoreIntoResult> {
  const { directory } = options;
  const flaws: Flaw[] = [];
  const capabilities = detectCapabilities();
  const { directories, files, links, specials } = sortOut(source, options, flaws);
  const at = (path: string) => (path === "." ? directory : `${directory}/${path}`);
  const anew = (path: string) => {
    if (again) rmSync(systemPath(path), { force: true });
    return path;
  };
  crashPoint("snapshot.restore.to-marked");
  for (const { path } of directories) if (path !== ".") makeOne(at(path), again);
  crashPoint("snapshot.restore.to-directories-made");
  let bytes = 0;
  const total = files.reduce((sum, { entry }) => sum + (entry.location?.length ?? 0), 0);
  const onDone = (_: number, more: number) => {
    bytes += more;
    options.onProgress({ phase: "restoring", done: bytes, total, unit: "bytes" });
  };
  flaws.push(
    ...(await makeAllFiles(
      { root: directory, replace: again },
      files,
      source.layers,
      onDone,
      options.signal,
    )),
  );
  crashPoint("snapshot.restore.to-files-made");
  for (const { entry, leader } of links) linkSync(systemPath(at(leader)), systemPath(anew(at(entry.path))));
  for (const entry of specials) makeSpecial(anew(at(entry.path)), entry, capabilities, flaws);
  crashPoint("snapshot.restore.to-links-made");
  // The top last: taking the mark away touches its time.
  for (const entry of directories.toReversed()) {
    if (entry.path === ".") rmSync(join(directory, MARK), { force: true });
    setMetadata(at(entry.path), entry, capabilities, flaws);
  }
  rmSync(join(directory, MARK), { force: true });
  crashPoint("snapshot.restore.to-done");
  const paths = directories.length + files.length + links.length + specials.length;
  return { paths, files: files.length + links.length, bytes, flaws };
}

interface Sorted {
  /** Parents first. */
  readonly directories: readonly Entry[];
  readonly files: readonly FileOrder[];
  /** Further names of a file that is made under another one. */
  readonly links: readonly { entry: Entry; leader: string }[];
  readonly specials: readonly Entry[];
}

const TOO_LONG =
  "its path is too long here: a second restore in place, or a directory with a shorter name, has room";

function sortOut({ listing }: Source, { scope, directory }: RestoreIntoOptions, flaws: Flaw[]): Sorted {
  const above = new Set(scope.only?.flatMap(ancestors));
  const directories: Entry[] = [];
  const files: FileOrder[] = [];
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

function makeOne(path: string, again: boolean): void {
  try {
    mkdirSync(systemPath(path), 0o700);
  } catch (error) {
    const there = again && systemErrorCode(error) === "EEXIST" && lstatSync(systemPath(path)).isDirectory();
    if (!there) throw error;
  }
}

function empty(directory: string): void {
  for (const name of readdirSync(directory, { encoding: "buffer" })) {
    removeTree(Buffer.concat([Buffer.from(directory + sep), name]));
  }
}
