// The git commit of a checkpoint: which of the cell's paths git is told of, and when it is not asked at all.
import { join } from "node:path";
import { askForPlace, commitWorktree, type GitRequest, ownGitDirectory } from "../git/commit.ts";
import type { MissionContext } from "../mission-context.ts";
import type { GitPosition } from "../model/entry.ts";
import { goneFromRows, linkedDirectories } from "../scan/classify.ts";
import type { StatCache } from "../scan/stat-cache.ts";
import { everythingIn } from "../scan/still.ts";
import type { Found, Walk } from "../scan/walk.ts";
import { createSecretMatcher } from "../settings.ts";

const WORKTREE = "worktree";

export const GIT_LEFT_ALONE: GitPosition = {
  status: "none",
  head: null,
  branch: null,
  commit: null,
  ref: null,
  note: "git was not asked: the repository came from elsewhere",
};

/** Files that git opens by itself: rules, and everything of a nested repository. */
const GIT_OWN = /\/\.git/;

/** Relative to the cell, when the repository's own directory lies in it. */
export function gitDirectoryInCell(context: MissionContext): string | undefined {
  return ownGitDirectory(join(context.cellRoot, WORKTREE)) === undefined ? undefined : `${WORKTREE}/.git`;
}

const gitRoom = ({ cellRoot, cacheDirectory, environment }: MissionContext) => ({
  worktree: join(cellRoot, WORKTREE),
  cacheDirectory,
  environment,
});

/** Where git stands, asked in advance. */
export function askGit(context: MissionContext): GitRequest["place"] {
  return askForPlace(gitRoom(context));
}

export async function commitCell(
  context: MissionContext,
  made: { id: string; createdAtMs: number; headId: string | null },
  { walk, cache, place }: { walk: Walk; cache: StatCache | undefined; place: GitRequest["place"] },
): Promise<GitPosition> {
  if (linkedDirectories(walk, cache, [WORKTREE]).length > 0)
    return { ...GIT_LEFT_ALONE, note: "git was not asked: the worktree is a link" };
  const inWorktree = (path: string) => path.startsWith(`${WORKTREE}/`) && path !== `${WORKTREE}/.git`;
  const trap = walk.found.find(({ path, type }) => type === "fifo" && inWorktree(path) && GIT_OWN.test(path));
  if (trap !== undefined)
    return {
      ...GIT_LEFT_ALONE,
      status: "degraded",
      note: `git would wait for ever on the FIFO ${trap.path}`,
    };
  const strip = (path: string) => path.slice(WORKTREE.length + 1);
  const isVisible = ({ path, type }: Found) => type !== "directory" && type !== "fifo" && inWorktree(path);
  const present = walk.found.filter((found) => !found.unchanged && isVisible(found));
  const gone = cache === undefined ? [] : goneFromRows(cache, walk.gone).map(({ path }) => path);
  const isSecret = createSecretMatcher(context.settings.secrets);
  const isAlone = present.every(({ inode }) => inode === undefined);
  return commitWorktree({
    ...gitRoom(context),
    place,
    checkpointId: made.id,
    createdAtMs: made.createdAtMs,
    headId: made.headId,
    // Not before they are asked for: every path of the cell is compared with every pattern.
    get secrets() {
      return findSecrets(isSecret, everythingIn(walk, cache).filter(isVisible).toArray()).map(strip);
    },
    get secretChanges() {
      return isAlone ? findSecrets(isSecret, present).map(strip) : this.secrets;
    },
    isSecret: (path) => isSecret(`${WORKTREE}/${path}`),
    secretRules: JSON.stringify(context.settings.secrets),
    changes:
      cache !== undefined
        ? { present: present.map(({ path }) => strip(path)), removed: gone.filter(inWorktree).map(strip) }
        : undefined,
  });
}

/** Secrets and every other name of the same file (INV-7). */
function findSecrets(isSecret: (path: string) => boolean, visible: readonly Found[]): string[] {
  const secrets = visible.filter(({ path }) => isSecret(path));
  const inodes = new Set(secrets.flatMap(({ inode }) => (inode === undefined ? [] : [inode])));
  const alias = visible.filter(
    ({ path, inode }) => inode !== undefined && inodes.has(inode) && !isSecret(path),
  );
  return [...secrets, ...(inodes.size === 0 ? [] : alias)].map(({ path }) => path);
}
