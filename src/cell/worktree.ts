// Fills a cell's empty worktree from a repository: a clone, or a linked worktree of a local one. A failed or killed clone
// leaves the worktree empty, since the clone is made next to it and renamed into place.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { crashPoint } from "../platform/crash-point.ts";
import type { Disk } from "../platform/disk.ts";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";
import { pidInUse } from "../platform/process-identity.ts";

export interface RepositorySource {
  /** A URL or a local path, as git takes it. */
  readonly repo: string;
  readonly branch?: string | undefined;
  /** Add a linked worktree of a local repository instead of cloning it. */
  readonly link?: boolean | undefined;
}

const STAGING_PREFIX = ".lazarus-clone-";

export function fillWorktree(disk: Disk, worktree: string, source: RepositorySource, cwd: string): void {
  if (readdirSync(worktree).length > 0) throw notEmpty(worktree);
  const repo = existsSync(resolve(cwd, source.repo)) ? resolve(cwd, source.repo) : source.repo;
  if (source.link) linkWorktree(worktree, repo, source.branch);
  else clone(disk, worktree, repo, source.branch);
}

function notEmpty(worktree: string): LazarusError {
  const message = `the worktree ${worktree} is not empty; nothing was cloned`;
  return new LazarusError("WORKTREE_NOT_EMPTY", message, {
    hint: `git -C ${worktree} status, or choose another mission`,
  });
}

function linkWorktree(worktree: string, repo: string, branch: string | undefined): void {
  // Detached unless a branch is given: two worktrees cannot check out the same branch.
  git(["-C", repo, "worktree", "add", ...(branch ? [worktree, branch] : ["--detach", worktree])], repo);
}

function clone(disk: Disk, worktree: string, repo: string, branch: string | undefined): void {
  const cell = dirname(worktree);
  for (const name of readdirSync(cell)) {
    // Left by a killed clone; one that still runs is kept.
    if (!name.startsWith(STAGING_PREFIX) || pidInUse(Number(name.slice(STAGING_PREFIX.length)))) continue;
    rmSync(join(cell, name), { recursive: true, force: true });
  }
  const staging = join(cell, `${STAGING_PREFIX}${process.pid}`);
  try {
    git(["clone", "--quiet", ...(branch ? ["--branch", branch] : []), "--", repo, staging], repo);
    crashPoint("cell.worktree.cloned");
    disk.rename(staging, worktree);
    disk.fsyncDirectory(cell);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    const code = systemErrorCode(error);
    // Filled by another process in the meantime.
    throw code === "ENOTEMPTY" || code === "EEXIST" ? notEmpty(worktree) : error;
  }
}

function git(args: string[], repo: string): void {
  try {
    execFileSync("git", args, { stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") {
      throw new LazarusError("GIT_FAILED", "git is not installed", {
        hint: "install git, then run the same command again",
      });
    }
    const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : String(error);
    throw new LazarusError("GIT_FAILED", `git could not copy ${repo} into the worktree: ${stderr}`, {
      hint: `git ls-remote ${repo}`,
    });
  }
}
