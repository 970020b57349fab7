// Finds git repositories that changed while they were captured (INV-6). Git writes objects before the refs and the index that
// name them, and packs before it removes what they hold. So a captured repository is complete if its objects were listed
// after everything else in it was read. Looks only at repositories in which this round stored or lost something.
import { lstatSync, readFileSync, type Stats } from "node:fs";
import { quietly } from "../../platform/errors.ts";
import type { TreeRoot } from "../model/cell-tree.ts";
import { OpenTree } from "../model/open-tree.ts";
import { joinPath, systemPath } from "../model/path-bytes.ts";
import { someParent } from "../model/paths.ts";
import type { Stored } from "../pack/layers.ts";
import type { Matcher } from "../path-patterns.ts";
import type { Survey } from "../scan/found.ts";
import { listExactNames } from "../scan/list-names.ts";
import { baseName } from "../scan/stat-row.ts";
import { type RowTree, type StatRows, treeOf } from "../scan/stat-rows.ts";

export interface GitRaceInput {
  readonly root: TreeRoot;
  readonly survey: Survey;
  /** What this round stored. */
  readonly stored: Stored;
  /** What the checkpoint would hold. */
  readonly rows: StatRows;
  readonly isExcluded: Matcher;
}

/** Paths of git directories, relative to the cell. */
export interface GitRaces {
  /** Refs moved between files and may be in none that was read: everything must be read again. */
  readonly refs: readonly string[];
  /** There are objects that the refs or the index may need and that the checkpoint does not hold. */
  readonly objects: readonly string[];
}

export const NO_RACES: GitRaces = { refs: [], objects: [] };
/** What names objects: HEAD and its relatives, the index, refs and their logs. */
const NAMES_OBJECTS = /(?:^|\/)(?:HEAD|index|packed-refs|[A-Z_]+_HEAD|(?:refs|logs|reftable)\/.+)$/;
const OBJECT = /\/objects\//;
const REF = /\/refs\//;
/** Git renames or links these when they are complete. */
const TEMPORARY = /^(?:tmp_|\.tmp-|incoming-)/;

export function findGitRaces(input: GitRaceInput): GitRaces {
  const { root, survey, stored, rows } = input;
  const naming = [...stored.captured.keys()].filter((path) => NAMES_OBJECTS.test(path));
  const lost = [...survey.removed, ...stored.missed.map(({ path }) => path)];
  const lostObjects = lost.filter((path) => OBJECT.test(path) && !TEMPORARY.test(baseName(path)));
  const lostRefs = lost.filter((path) => REF.test(path));
  if (naming.length + lostObjects.length + lostRefs.length === 0) return NO_RACES;
  const tree = treeOf(rows);
  const repositoriesOf = repositoryFinder(tree);
  using disk = new OpenTree(root);
  const look: Look = { ...input, tree, disk };
  const repositories = [...repositoriesOf([...naming, ...lostRefs])];
  return {
    refs: repositories.filter((repository) => haveRefsMoved(look, repository)),
    objects: [...new Set([...repositories, ...repositoriesOf(lostObjects)])].filter((repository) =>
      hasLateObjects(look, joinPath(repository, "objects")),
    ),
  };
}

interface Look extends GitRaceInput {
  readonly tree: RowTree;
  readonly disk: OpenTree;
}

/** The git directories above paths; a worktree's or submodule's own directory is inside that of the main repository. */
function repositoryFinder(tree: RowTree): (paths: readonly string[]) => Set<string> {
  const known = new Map<string, boolean>();
  const isRepository = (path: string) => {
    let answer = known.get(path);
    if (answer === undefined) {
      answer =
        tree.typeOf(joinPath(path, "objects")) === "directory" &&
        tree.typeOf(joinPath(path, "HEAD")) !== undefined;
      known.set(path, answer);
    }
    return answer;
  };
  return (paths) => {
    const found = new Set<string>();
    for (const path of paths)
      someParent(path, (parent) => {
        if (isRepository(parent)) found.add(parent);
        return false;
      });
    return found;
  };
}

/** Git adds refs to packed-refs before it removes their files, so a capture in between may have seen neither. */
function haveRefsMoved(look: Look, repository: string): boolean {
  const { disk } = look;
  const head = quietly(() => readFileSync(systemPath(disk.at(joinPath(repository, "HEAD"))), "latin1"));
  const branch = /^ref: (refs\/\S+)/.exec(head ?? "")?.[1];
  return (
    hasOtherFile(look, joinPath(repository, "packed-refs")) ||
    isUnknown(look, joinPath(repository, "index")) ||
    (branch !== undefined && isUnknown(look, joinPath(repository, branch)))
  );
}

/** A file that the checkpoint should hold and does not: memory file systems may not list a name that is being replaced. */
function isUnknown({ rows, disk, isExcluded }: Look, path: string): boolean {
  return (
    rows.stat(path) === undefined &&
    !isExcluded(path, baseName(path)) &&
    statOf(disk, path)?.isFile() === true
  );
}

/** The file is not the one that the checkpoint holds. */
function hasOtherFile(look: Look, path: string): boolean {
  const row = look.rows.stat(path);
  if (row === undefined) return isUnknown(look, path);
  const stat = statOf(look.disk, path);
  return stat !== undefined && (row.ino !== stat.ino || row.ctimeMs !== stat.ctimeMs);
}

function hasLateObjects(look: Look, objects: string): boolean {
  const { tree, disk, survey } = look;
  return [objects, ...[...tree.children(objects)].filter((path) => tree.typeOf(path) === "directory")].some(
    (directory) => {
      const changed = statOf(disk, directory)?.ctimeMs;
      return changed !== undefined && changed >= survey.namesSinceMs && hasLateNames(look, directory);
    },
  );
}

/** Names that appeared since the walk began. Older ones could not be captured, which the capture has reported. */
function hasLateNames({ rows, disk, survey, isExcluded }: Look, directory: string): boolean {
  const names = quietly(() => listExactNames(disk.directory(directory))) ?? [];
  return names.some((name) => {
    const path = joinPath(directory, name);
    if (TEMPORARY.test(name) || rows.stat(path) !== undefined || isExcluded(path, name)) return false;
    return (statOf(disk, path)?.ctimeMs ?? 0) >= survey.namesSinceMs;
  });
}

function statOf(disk: OpenTree, path: string): Stats | undefined {
  return quietly(() => lstatSync(systemPath(disk.at(path)), { throwIfNoEntry: false }));
}
