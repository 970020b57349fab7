// Commits the worktree's full visible state (tracked + untracked, not ignored) to refs/lazarus/checkpoints/<id> through
// a private index. The user's HEAD, branch, index, stash, reflog and hooks are never touched. The private index is kept
// between checkpoints, so that a few changed files cost a few git calls and no second walk. Any failure makes this part
// degraded and says so; the layers stay the truth.
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { GitPosition } from "../entry.ts";
import { encodePath } from "../path-bytes.ts";
import { type GitOptions, git } from "./git-command.ts";

export interface GitRequest {
  readonly worktree: string;
  readonly checkpointId: string;
  readonly createdMs: number;
  readonly cacheDirectory: string;
  readonly environment: GitOptions["environment"];
  /** Changed and removed paths relative to the worktree, when they are known; undefined means "look at everything". */
  readonly changes: { readonly present: readonly string[]; readonly removed: readonly string[] } | undefined;
}

/** What the last commit was made from; valid only while all of it still holds. */
interface Remembered {
  readonly gitDirectory: string;
  readonly head: string | null;
  readonly tree: string;
  readonly commit: string;
  readonly ref: string;
  readonly userIndex: string;
  readonly excludes: string;
  readonly note: string | null;
}

const REF_PREFIX = "refs/lazarus/checkpoints/";
const FEW = 2000;
const RULES = /(^|\/)\.git(ignore|attributes|modules)$/;

/** The repository's own directory, when it lies in the worktree as a directory. */
export function ownGitDirectory(worktree: string): string | undefined {
  const path = join(worktree, ".git");
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ? path : undefined;
}

export async function commitWorktree(request: GitRequest): Promise<GitPosition> {
  const nothing = { head: null, branch: null, commit: null, ref: null };
  if (!existsSync(join(request.worktree, ".git")))
    return { status: "none", ...nothing, note: "the worktree is no git repository" };
  const degraded = (position: Partial<GitPosition>, note: string): GitPosition => ({
    ...nothing,
    ...position,
    status: "degraded",
    note,
  });
  const call = (args: readonly string[], extra: Partial<GitOptions> = {}) =>
    git(request.worktree, args, { environment: request.environment, ...extra });

  const [place, headCall] = await Promise.all([
    call([
      "rev-parse",
      "--path-format=absolute",
      "--absolute-git-dir",
      "--git-path",
      "index",
      "--git-path",
      "info/exclude",
    ]),
    call(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]),
  ]);
  if (place.code !== 0) return degraded({}, `git: ${place.stderr || "not usable"}`);
  const [gitDirectory = "", userIndexFile = "", excludeFile = ""] = place.stdout.split("\n");
  const head = headCall.code === 0 ? headCall.stdout.trim() : null;
  const branch = readBranch(gitDirectory);
  const indexFile = join(request.cacheDirectory, "git-index");
  const stateFile = join(request.cacheDirectory, "git.json");
  const userIndex = stamp(userIndexFile);
  const excludes = stamp(excludeFile);
  const last = readState(stateFile);
  const sameGround =
    last !== undefined &&
    last.gitDirectory === gitDirectory &&
    last.head === head &&
    last.userIndex === userIndex &&
    last.excludes === excludes &&
    existsSync(indexFile);
  const changes = sameGround ? request.changes : undefined;
  if (changes !== undefined && last !== undefined && changes.present.length + changes.removed.length === 0) {
    return { status: "unchanged", head, branch, commit: last.commit, ref: last.ref, note: last.note };
  }

  mkdirSync(request.cacheDirectory, { recursive: true, mode: 0o700 });
  // Until the state is written again, a crash leaves an index that nobody trusts.
  rmSync(stateFile, { force: true });
  let note: string | null = null;
  const quick = changes !== undefined && isSimple(request.worktree, changes);
  if (quick) {
    const failure = await updateIndex(call, indexFile, changes);
    if (failure !== undefined) return degraded({ head, branch }, failure);
    note = last?.note ?? null;
  } else {
    const added = await addEverything(call, indexFile, userIndexFile);
    if (added.failure !== undefined) return degraded({ head, branch }, added.failure);
    note = added.note;
  }

  const treeCall = await call(["write-tree"], { indexFile });
  if (treeCall.code !== 0) return degraded({ head, branch }, `git write-tree: ${treeCall.stderr}`);
  const tree = treeCall.stdout.trim();
  const remember = (commit: string, ref: string) =>
    writeFileSync(
      stateFile,
      JSON.stringify({
        gitDirectory,
        head,
        tree,
        commit,
        ref,
        userIndex: stamp(userIndexFile),
        excludes,
        note,
      } satisfies Remembered),
      { mode: 0o600 },
    );
  if (last !== undefined && last.tree === tree && last.head === head && last.gitDirectory === gitDirectory) {
    remember(last.commit, last.ref);
    return { status: "unchanged", head, branch, commit: last.commit, ref: last.ref, note };
  }
  const commitCall = await call(["commit-tree", tree, ...(head === null ? [] : ["-p", head])], {
    date: `@${Math.floor(request.createdMs / 1000)} +0000`,
    input: `lazarus checkpoint ${request.checkpointId}\n`,
  });
  if (commitCall.code !== 0) return degraded({ head, branch }, `git commit-tree: ${commitCall.stderr}`);
  const commit = commitCall.stdout.trim();
  const ref = REF_PREFIX + request.checkpointId;
  const refCall = await call(["update-ref", ref, commit]);
  if (refCall.code !== 0) return degraded({ head, branch, commit }, `git update-ref: ${refCall.stderr}`);
  remember(commit, ref);
  return { status: "committed", head, branch, commit, ref, note };
}

/** Removes the refs of checkpoints that are gone, so that git may collect their objects. Best effort. */
export async function forgetCommits(
  worktree: string,
  ids: readonly string[],
  environment: GitOptions["environment"],
): Promise<void> {
  if (ids.length === 0 || !existsSync(join(worktree, ".git"))) return;
  const input = ids.map((id) => `delete ${REF_PREFIX}${id}\n`).join("");
  await git(worktree, ["update-ref", "--stdin"], { environment, input });
}

/** Only plain changes of plain files: rules, submodules and nested repositories need git's own eyes. */
function isSimple(worktree: string, changes: NonNullable<GitRequest["changes"]>): boolean {
  const all = [...changes.present, ...changes.removed];
  if (all.length > FEW || all.some((path) => RULES.test(path))) return false;
  const directories = new Set<string>();
  for (const path of all) {
    for (let parent = dirname(path); parent !== "." && !directories.has(parent); parent = dirname(parent))
      directories.add(parent);
  }
  for (const path of changes.present) directories.add(path);
  for (const directory of directories) if (existsSync(join(worktree, directory, ".git"))) return false;
  return true;
}

type Call = (args: readonly string[], extra?: Partial<GitOptions>) => ReturnType<typeof git>;

async function updateIndex(
  call: Call,
  indexFile: string,
  changes: NonNullable<GitRequest["changes"]>,
): Promise<string | undefined> {
  let visible = changes.present;
  if (visible.length > 0) {
    const ignored = await call(["check-ignore", "-z", "--stdin"], { indexFile, input: joinNul(visible) });
    if (ignored.code !== 0 && ignored.code !== 1) return `git check-ignore: ${ignored.stderr}`;
    const hidden = new Set(ignored.stdout.split("\0"));
    visible = visible.filter((path) => !hidden.has(path));
  }
  const paths = [...visible, ...changes.removed];
  if (paths.length === 0) return undefined;
  const update = await call(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], {
    indexFile,
    input: joinNul(paths),
  });
  return update.code === 0 ? undefined : `git update-index: ${update.stderr}`;
}

const WITHOUT_COMMIT = /'(.+?)\/?' does not have a commit checked out/;
const RETRIES = 50;

/** Starts from a copy of the user's index, whose stat data spares git from hashing every file. */
async function addEverything(
  call: Call,
  indexFile: string,
  userIndexFile: string,
): Promise<{ failure?: string; note: string | null }> {
  rmSync(indexFile, { force: true });
  rmSync(`${indexFile}.lock`, { force: true });
  try {
    if (existsSync(userIndexFile)) copyFileSync(userIndexFile, indexFile);
  } catch {
    // The user's git replaces its index by rename; without a copy we only pay the hashing.
    rmSync(indexFile, { force: true });
  }
  const without: string[] = [];
  for (let attempt = 0; attempt < RETRIES; attempt += 1) {
    const result = await call(
      ["add", "--all", "--ignore-errors", "--", ".", ...without.map((path) => `:(exclude,literal)${path}`)],
      { indexFile },
    );
    if (result.code === 0)
      return {
        note:
          without.length === 0
            ? null
            : `not in the git commit, since they have no commit of their own: ${without.join(", ")}`,
      };
    const empty = WITHOUT_COMMIT.exec(result.stderr)?.[1];
    if (empty === undefined || without.includes(empty))
      return { failure: `git add: ${result.stderr}`, note: null };
    without.push(empty);
  }
  return { failure: "git add: too many nested repositories without a commit", note: null };
}

function joinNul(paths: readonly string[]): Buffer {
  return Buffer.concat(paths.flatMap((path) => [encodePath(path), Buffer.of(0)]));
}

function readBranch(gitDirectory: string): string | null {
  try {
    return /^ref: refs\/heads\/(.+)$/m.exec(readFileSync(join(gitDirectory, "HEAD"), "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

function stamp(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "absent" : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

function readState(file: string): Remembered | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
