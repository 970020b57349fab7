// Reads HEAD and branch of an ordinary repository without starting git, which takes longer than a whole small live point. Returns
// undefined for anything unusual (linked worktrees, links, reftables, damage): then git is used.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

export interface Head {
  /** Null on a branch without commits. */
  readonly head: string | null;
  /** Null when HEAD is detached. */
  readonly branch: string | null;
}

const OPEN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const MAX_BYTES = 4 << 20;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** Names that git itself would write: no component starts with a dot. */
const BRANCH = /^ref: refs\/heads\/([^\s~^:?*[\\.][^\s~^:?*[\\]*)$/;

/** `gitDirectory` is a directory in the worktree. */
export function readHead(gitDirectory: string): Head | undefined {
  // With reftables, HEAD names an invalid branch and the refs are elsewhere.
  if (readSmallFile(join(gitDirectory, "reftable/tables.list")) !== undefined) return undefined;
  const text = readSmallFile(join(gitDirectory, "HEAD"))?.trimEnd();
  if (text === undefined) return undefined;
  if (COMMIT.test(text)) return { head: text, branch: null };
  const branch = BRANCH.exec(text)?.[1];
  if (branch === undefined || branch.split("/").some((part) => part === "" || part.startsWith(".")))
    return undefined;
  const loose = readSmallFile(join(gitDirectory, "refs/heads", branch))?.trimEnd();
  const head = loose ?? findPacked(gitDirectory, `refs/heads/${branch}`);
  return head === undefined || !COMMIT.test(head) ? undefined : { head, branch };
}

/** Undefined when it is not there: the branch may have no commits, or git has moved it at this moment. */
function findPacked(gitDirectory: string, ref: string): string | undefined {
  const packed = readSmallFile(join(gitDirectory, "packed-refs"));
  const line = packed?.split("\n").find((each) => each.endsWith(` ${ref}`));
  return line?.slice(0, line.indexOf(" "));
}

/** Undefined for what is not a regular file, or is too large. */
function readSmallFile(file: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(file, OPEN);
  } catch {
    return undefined;
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > MAX_BYTES) return undefined;
    const bytes = Buffer.alloc(stat.size);
    return bytes.toString("utf8", 0, readSync(fd, bytes));
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}
