// The git commit of a checkpoint: which of the cell's paths it holds, and when git is not used at all.
import { commitWorktree, ownGitDirectory, readGitPosition } from "../git/commit.ts";
import { asFlaw, findOutside, isGitPointer } from "../git/outside.ts";
import { pointersWithCopy } from "../git/outside-adopt.ts";
import { copyOutside, copyPathOf, DESCRIPTION } from "../git/outside-copy.ts";
import type { MissionContext } from "../mission-context.ts";
import { diskPath, outsideWorktree, WORKTREE } from "../model/cell-tree.ts";
import type { Flaw, GitPosition } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import { createSecretMatcher } from "../path-patterns.ts";
import { createCacheTree } from "../scan/cache-tree.ts";
import { goneFromRows, linkedDirectories } from "../scan/classify.ts";
import type { Found, Walk } from "../scan/found.ts";
import type { StatCache } from "../scan/stat-cache.ts";
import { allFound } from "../scan/unchanged-rows.ts";
import type { Scan } from "./survey.ts";

export const GIT_NOT_USED: GitPosition = {
  status: "none",
  head: null,
  branch: null,
  commit: null,
  ref: null,
  note: "git was not used: the repository came from elsewhere",
};

/** Nothing of ours is written to a repository in place (ADR 16). */
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
  /** Only read where the repository stands. */
  readonly isDeferred: boolean;
}

export async function commitCell(
  context: MissionContext,
  identity: CommitOptions,
  { walk, cache }: Scan,
): Promise<GitPosition> {
  if (linkedDirectories(walk, cache, [WORKTREE]).length > 0)
    return { ...GIT_NOT_USED, note: "git was not used: the worktree is a link" };
  const fifo = walk.found.find(
    ({ path, type }) => type === "fifo" && isVisible(path) && READ_BY_GIT.test(path),
  );
  if (fifo !== undefined)
    return { ...GIT_NOT_USED, status: "degraded", note: `git would block forever on the FIFO ${fifo.path}` };
  if (outsideWorktree(context.tree) !== undefined)
    return readGitPosition(diskPath(context.tree, WORKTREE), context.environment, IN_PLACE);
  if (identity.isDeferred)
    return readGitPosition(diskPath(context.tree, WORKTREE), context.environment, DEFERRED);
  const isCommitted = ({ path, type }: Found) => type !== "directory" && type !== "fifo" && isVisible(path);
  const present = walk.found.filter((found) => !found.unchanged && isCommitted(found));
  const gone = cache === undefined ? [] : goneFromRows(cache, walk.gone).map(({ path }) => path);
  const isSecret = createSecretMatcher(context.settings.secrets);
  const isEveryNameKnown = present.every(({ inode }) => inode === undefined);
  return commitWorktree({
    worktree: diskPath(context.tree, WORKTREE),
    cacheDirectory: context.cacheDirectory,
    environment: context.environment,
    checkpointId: identity.id,
    createdAtMs: identity.createdAtMs,
    headId: identity.headId,
    // Lazy: this compares every path of the cell with every pattern.
    get secrets() {
      return findSecrets(isSecret, allFound(walk, cache).filter(isCommitted).toArray());
    },
    get secretChanges() {
      return isEveryNameKnown ? findSecrets(isSecret, present) : this.secrets;
    },
    isSecret: (path) => isSecret(`${WORKTREE}/${path}`),
    secretRules: JSON.stringify(context.settings.secrets),
    changes:
      cache === undefined
        ? undefined
        : {
            present: present.map(({ path }) => inWorktree(path)),
            removed: gone.filter(isVisible).map(inWorktree),
          },
  });
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

/** The same for those that the walk has found. The cell must be walked again where one was copied. */
export function copyFoundRepositories(
  context: MissionContext,
  { found }: Walk,
  known: OutsideCopies,
): Promise<OutsideCopies> {
  const paths = found.filter(isGitPointer).map(({ path }) => path);
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
  cache: StatCache,
  { before, copies }: { readonly before: readonly Flaw[]; readonly copies: OutsideCopies },
): Flaw[] {
  const candidates = new Set([
    ...OWN_POINTERS,
    ...copies.keys(),
    ...found.filter(isGitPointer).map(({ path }) => path),
    ...before.map(({ path }) => path),
  ]);
  const tree = createCacheTree(cache);
  const isHeld = (path: string) => {
    const type = tree.typeOf(path);
    return type !== undefined && isGitPointer({ path, type });
  };
  const hasCopy = (path: string) => tree.typeOf(`${copyPathOf(path)}/${DESCRIPTION}`) === "file";
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
function findSecrets(isSecret: (path: string) => boolean, candidates: readonly Found[]): string[] {
  const secrets = candidates.filter(({ path }) => isSecret(path));
  const inodes = new Set(secrets.flatMap(({ inode }) => (inode === undefined ? [] : [inode])));
  const aliases = candidates.filter(
    ({ path, inode }) => inode !== undefined && inodes.has(inode) && !isSecret(path),
  );
  return [...secrets, ...aliases].map(({ path }) => inWorktree(path));
}
