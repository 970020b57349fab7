// The git commit of a checkpoint: which of the cell's paths it holds, and when git is not used at all.
import { lstatSync } from "node:fs";
import { commitWorktree, ownGitDirectory, readGitPosition } from "../git/commit.ts";
import { asFlaw, findOutside, isGitPointer } from "../git/outside.ts";
import { pointersWithCopy } from "../git/outside-adopt.ts";
import { copyOutside, copyPathOf, DESCRIPTION } from "../git/outside-copy.ts";
import type { MissionContext } from "../mission-context.ts";
import { diskPath, outsideWorktree, type TreeRoot, WORKTREE } from "../model/cell-tree.ts";
import type { Flaw, GitPosition } from "../model/entry.ts";
import { comparePaths, joinPath, systemPath } from "../model/path-bytes.ts";
import { createSecretMatcher } from "../path-patterns.ts";
import type { Found, Walk } from "../scan/found.ts";
import { NO_ROWS, type StatRows } from "../scan/stat-rows.ts";
import type { Scan } from "./survey.ts";

export const GIT_NOT_USED: GitPosition = {
  status: "none",
  head: null,
  branch: null,
  commit: null,
  ref: null,
  note: "git was not used: the repository came from elsewhere",
};

/** Lazarus writes nothing to a repository in place (ADR 16). */
const IN_PLACE = { status: "none", note: "the repository is in place: no commit is added to it" } as const;
const DEFERRED = { status: "deferred", note: "a live point adds no commit" } as const;

/** Files that git opens itself: ignore rules, and everything in a nested repository. */
const READ_BY_GIT = /\/\.git/;

/** Path of the repository that git will write to, relative to the cell, if it is in the cell. */
export function gitDirectoryInCell(context: MissionContext): string | undefined {
  if (outsideWorktree(context.tree) !== undefined) return undefined;
  return ownGitDirectory(diskPath(context.tree, WORKTREE)) === undefined ? undefined : `${WORKTREE}/.git`;
}

export interface CommitOptions {
  readonly id: string;
  readonly createdAtMs: number;
  readonly headId: string | null;
  /** Only reads HEAD and branch of the repository. */
  readonly isDeferred: boolean;
}

export async function commitCell(
  context: MissionContext,
  identity: CommitOptions,
  scan: Scan,
): Promise<GitPosition> {
  const { walk, rows } = scan;
  const worktree = diskPath(context.tree, WORKTREE);
  if (lstatSync(worktree, { throwIfNoEntry: false })?.isSymbolicLink())
    return { ...GIT_NOT_USED, note: "git was not used: the worktree is a link" };
  const fifo = findFifo(scan);
  if (fifo !== undefined)
    return { ...GIT_NOT_USED, status: "degraded", note: `git would block forever on the FIFO ${fifo}` };
  if (outsideWorktree(context.tree) !== undefined)
    return readGitPosition(worktree, context.environment, IN_PLACE);
  if (identity.isDeferred) return readGitPosition(worktree, context.environment, DEFERRED);
  const present = [...walk.found.values()].filter((found) => !found.unchanged && isCommitted(found));
  const isSecret = createSecretMatcher(context.settings.secrets);
  const isEveryNameKnown = present.every(({ inode }) => inode === undefined);
  return commitWorktree({
    worktree,
    cacheDirectory: context.cacheDirectory,
    environment: context.environment,
    checkpointId: identity.id,
    createdAtMs: identity.createdAtMs,
    headId: identity.headId,
    // Lazy: this compares every path of the cell with every pattern.
    get secrets() {
      return findSecrets(isSecret, committedPaths(context.tree, scan));
    },
    get secretChanges() {
      return isEveryNameKnown ? findSecrets(isSecret, present) : this.secrets;
    },
    isSecret: (path) => isSecret(`${WORKTREE}/${path}`),
    secretRules: JSON.stringify(context.settings.secrets),
    changes:
      rows === NO_ROWS
        ? undefined
        : {
            present: present.map(({ path }) => inWorktree(path)),
            removed: [...walk.gone.keys()].filter(isVisible).sort(comparePaths).map(inWorktree),
          },
  });
}

/** A FIFO that git would open. */
function findFifo({ walk, rows }: Scan): string | undefined {
  const isFatal = (path: string) => isVisible(path) && READ_BY_GIT.test(path);
  for (const { path, type } of walk.found.values()) if (type === "fifo" && isFatal(path)) return path;
  return rows.fifos().find((path) => !walk.gone.has(path) && isFatal(path));
}

type Committed = Pick<Found, "path" | "type" | "inode">;

const isCommitted = ({ path, type }: Committed) => type !== "directory" && type !== "fifo" && isVisible(path);

/** Every path that git may see. O(cell). */
function committedPaths(tree: TreeRoot, { walk, rows }: Scan): Committed[] {
  const committed: Committed[] = [...walk.found.values()].filter(isCommitted);
  for (const directory of rows.directories())
    for (const { name, type, nlink } of rows.children(directory)) {
      const path = joinPath(directory, name);
      if (walk.found.has(path) || walk.gone.has(path) || !isCommitted({ path, type })) continue;
      const inode = type === "file" && nlink > 1 ? inodeAt(diskPath(tree, path)) : undefined;
      committed.push({ path, type, ...(inode === undefined ? {} : { inode }) });
    }
  return committed;
}

function inodeAt(file: string): string | undefined {
  const stat = lstatSync(systemPath(file), { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

/** What a commit may have changed in the repository of the worktree, which no watcher has reported yet. */
export function writtenByGit(context: MissionContext, rows: StatRows): string[] {
  const directory = gitDirectoryInCell(context);
  if (directory === undefined) return [];
  const at = (name: string) => joinPath(directory, name);
  const objects = rows.children(at("objects")).map(({ name }) => at(`objects/${name}`));
  const refs = ["refs", "refs/lazarus", "refs/lazarus/checkpoints"].map(at);
  return [directory, at("objects"), ...objects, ...refs, at("packed-refs"), at("logs")];
}

/** Why the copy of a repository outside the cell is incomplete, by the path that leads there; undefined when it is complete. */
export type OutsideCopies = ReadonlyMap<string, string | undefined>;

/**
 * Brings the copies of repositories outside the cell up to date, before the cell is walked: of the worktree's own, of those
 * that have a copy, and of those that the last checkpoint named.
 */
export function copyKnownRepositories(
  context: MissionContext,
  before: readonly Flaw[],
): Promise<OutsideCopies> {
  const known = [...pointersWithCopy(context.cellRoot), ...before.map(({ path }) => path)];
  return copyRepositories(context, new Set([...OWN_POINTERS, ...known.filter(isPointerPath)]));
}

/** Copies the repositories that the walk has found. If one was copied, the cell must be walked again. */
export function copyFoundRepositories(
  context: MissionContext,
  { found }: Walk,
  known: OutsideCopies,
): Promise<OutsideCopies> {
  const paths = [...found.values()].filter(isGitPointer).map(({ path }) => path);
  return copyRepositories(context, new Set(paths.filter((path) => !known.has(path))));
}

const OWN_POINTERS = [`${WORKTREE}/.git`, `${WORKTREE}/.git/objects/info/alternates`];
const isPointerPath = (path: string) => isGitPointer({ path, type: "file" });

async function copyRepositories(
  { tree, environment }: MissionContext,
  paths: ReadonlySet<string>,
): Promise<OutsideCopies> {
  const copies = new Map<string, string | undefined>();
  for (const outside of paths.size === 0 ? [] : findOutside(tree, paths))
    copies.set(outside.path, await copyOutside(outside, { tree, environment }));
  return copies;
}

/**
 * Repositories that a checkpoint does not hold completely. Looks at paths that are new or changed, at those that the last
 * checkpoint named, and at the worktree's own.
 */
export function findOutsideRepositories(
  context: MissionContext,
  { found }: Walk,
  rows: StatRows,
  { before, copies }: { readonly before: readonly Flaw[]; readonly copies: OutsideCopies },
): Flaw[] {
  const candidates = new Set([
    ...OWN_POINTERS,
    ...copies.keys(),
    ...[...found.values()].filter(isGitPointer).map(({ path }) => path),
    ...before.map(({ path }) => path),
  ]);
  const isHeld = (path: string) => {
    const type = rows.stat(path)?.type;
    return type !== undefined && isGitPointer({ path, type });
  };
  const hasCopy = (path: string) => rows.stat(`${copyPathOf(path)}/${DESCRIPTION}`)?.type === "file";
  const isCopied = (path: string) => copies.has(path) && copies.get(path) === undefined && hasCopy(path);
  return findOutside(context.tree, [...candidates].filter(isHeld).sort(comparePaths))
    .filter(({ path }) => !isCopied(path))
    .map((outside) => {
      const { path } = outside;
      return asFlaw(outside, { problem: copies.get(path), hasEarlierCopy: hasCopy(path) });
    });
}

function isVisible(path: string): boolean {
  return path.startsWith(`${WORKTREE}/`) && path !== `${WORKTREE}/.git`;
}

function inWorktree(path: string): string {
  return path.slice(WORKTREE.length + 1);
}

/** Secrets and every other name of the same files (INV-7), relative to the worktree. */
function findSecrets(isSecret: (path: string) => boolean, candidates: readonly Committed[]): string[] {
  const secrets = candidates.filter(({ path }) => isSecret(path));
  const inodes = new Set(secrets.flatMap(({ inode }) => (inode === undefined ? [] : [inode])));
  const aliases = candidates.filter(
    ({ path, inode }) => inode !== undefined && inodes.has(inode) && !isSecret(path),
  );
  return [...secrets, ...aliases].map(({ path }) => inWorktree(path));
}
