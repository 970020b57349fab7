// Commits the worktree's full visible state (tracked + untracked, not ignored) to refs/lazarus/checkpoints/<id> through
// a private index. The user's HEAD, branch, index, stash, reflog and hooks are never touched. The private index is kept
// between checkpoints, so that a few changed files cost a few git calls and no second walk. A failure makes the git
// position of the checkpoint degraded, with a note; the layers do not depend on it.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { messageOf, quietly, systemErrorCode } from "../../platform/errors.ts";
import type { GitPosition } from "../model/entry.ts";
import { type GitOptions, git } from "./git-command.ts";
import {
  addEverything,
  type Call,
  type IndexRequest,
  isSimple,
  type PathChanges,
  updateIndex,
} from "./private-index.ts";
import { readHead } from "./read-head.ts";

export interface GitRequest {
  readonly worktree: string;
  readonly checkpointId: string;
  readonly createdAtMs: number;
  /** The checkpoint that `changes` is relative to. */
  readonly headId: string | null;
  readonly cacheDirectory: string;
  readonly environment: GitOptions["environment"];
  /** Changed and removed paths relative to the worktree; undefined means that git has to find them. */
  readonly changes: PathChanges | undefined;
  /** All secret files in the worktree. */
  readonly secrets: readonly string[];
  /** At least the secret files among `changes`: cheaper than `secrets`. */
  readonly secretChanges?: readonly string[];
  readonly isSecret: (path: string) => boolean;
  /** The patterns behind `isSecret`, in comparable form. */
  readonly secretRules: string;
  /** Limit for one call of git. */
  readonly timeoutMs?: number;
}

interface Failure {
  readonly failure: string;
}

/** What the last commit was made from. */
interface Remembered {
  readonly gitDirectory: string;
  readonly head: string | null;
  readonly tree: string;
  readonly commit: string;
  readonly ref: string;
  /** Stat of everything that decides what git sees: index, rules, configuration. */
  readonly ground: string;
  readonly note: string | null;
  /** The checkpoint that this was made for, and the one that its changes were relative to. */
  readonly checkpoint: string;
  readonly since: string | null;
}

const REF_PREFIX = "refs/lazarus/checkpoints/";
const NOT_A_REPOSITORY = "the worktree is not a git repository";
const NO_POSITION = { head: null, branch: null, commit: null, ref: null } as const;

/** The repository's own directory, if it is a directory in the worktree. */
export function ownGitDirectory(worktree: string): string | undefined {
  return statOfGit(worktree)?.isDirectory() ? join(worktree, ".git") : undefined;
}

/** Undefined also for a worktree that this user may not enter: the walk reports that one as unreadable. */
function statOfGit(worktree: string): Stats | undefined {
  try {
    return lstatSync(join(worktree, ".git"), { throwIfNoEntry: false });
  } catch (error) {
    if (systemErrorCode(error) === "EACCES") return undefined;
    throw error;
  }
}

export async function commitWorktree(request: GitRequest): Promise<GitPosition> {
  if (statOfGit(request.worktree) === undefined)
    return { status: "none", ...NO_POSITION, note: NOT_A_REPOSITORY };
  try {
    const state = await readRepository(request);
    if ("failure" in state) return degraded(state.failure);
    return await commitVisible(request, state);
  } catch (error) {
    // For example a cache directory that is full or read-only.
    const why = messageOf(error);
    return { status: "degraded", ...NO_POSITION, note: `git commit: ${why}` };
  }
}

/** Branch and commit of a repository that gets no commit, and `why`. */
export async function readGitPosition(
  worktree: string,
  environment: GitOptions["environment"],
  why: Pick<GitPosition, "status" | "note">,
): Promise<GitPosition> {
  const position = { status: "none", ...NO_POSITION } as const;
  if (statOfGit(worktree) === undefined) return { ...position, note: NOT_A_REPOSITORY };
  const own = ownGitDirectory(worktree);
  const read = own === undefined ? undefined : readHead(own);
  if (read !== undefined) return { ...position, ...why, ...read };
  const found = await findRepository(
    (args, extra = {}) => git(worktree, args, { environment, ...extra }),
    undefined,
  );
  if ("failure" in found) return { ...position, note: found.failure.replaceAll("\n", "; ") };
  return { ...position, ...why, head: found.head, branch: found.branch };
}

/** Git reports on several lines; here it becomes part of a sentence. */
function degraded(note: string, position: Partial<GitPosition> = {}): GitPosition {
  return { ...NO_POSITION, ...position, status: "degraded", note: note.replaceAll("\n", "; ") };
}

/** The repository before the commit, compared with the last commit. */
interface RepositoryState {
  readonly repository: Repository;
  readonly ground: string;
  /** Set when the last commit belongs to this repository, HEAD and ref. */
  readonly last: Remembered | undefined;
  /** Nothing but `changes` can differ from the kept index. */
  readonly isIndexCurrent: boolean;
}

async function readRepository(request: GitRequest): Promise<RepositoryState | Failure> {
  const remembered = readState(stateFileOf(request));
  const repository = await findRepository(callerOf(request), remembered?.ref);
  if ("failure" in repository) return repository;
  const ground = stampInputs(request, repository.files);
  const isLast =
    remembered !== undefined &&
    remembered.gitDirectory === repository.gitDirectory &&
    remembered.head === repository.head &&
    remembered.commit === repository.lastCommit;
  const last = isLast ? remembered : undefined;
  const isIndexCurrent =
    last !== undefined &&
    last.ground === ground &&
    request.headId !== null &&
    (last.checkpoint === request.headId || last.since === request.headId) &&
    existsSync(keptIndexOf(request));
  return { repository, ground, last, isIndexCurrent };
}

async function commitVisible(request: GitRequest, state: RepositoryState): Promise<GitPosition> {
  const { head, branch } = state.repository;
  const { last, isIndexCurrent } = state;
  const { changes } = request;
  const unchanged = (commit: Remembered, note: string | null): GitPosition => {
    remember(request, state, { ...commit, note });
    return { status: "unchanged", head, branch, commit: commit.commit, ref: commit.ref, note };
  };
  if (isIndexCurrent && changes !== undefined && changes.present.length + changes.removed.length === 0)
    return unchanged(last!, last!.note);
  const written = await writeTree(request, state);
  if ("failure" in written) return degraded(written.failure, { head, branch });
  const { tree, note } = written;
  if (last !== undefined && last.tree === tree) return unchanged(last, note);
  const call = callerOf(request);
  const commitCall = await call(["commit-tree", tree, ...(head === null ? [] : ["-p", head])], {
    date: `@${Math.floor(request.createdAtMs / 1000)} +0000`,
    input: `lazarus checkpoint ${request.checkpointId}\n`,
  });
  if (commitCall.code !== 0) return degraded(`git commit-tree: ${commitCall.stderr}`, { head, branch });
  const commit = commitCall.stdout.trim();
  const ref = REF_PREFIX + request.checkpointId;
  const refCall = await call(["update-ref", ref, commit]);
  if (refCall.code !== 0) return degraded(`git update-ref: ${refCall.stderr}`, { head, branch, commit });
  remember(request, state, { tree, commit, ref, note });
  return { status: "committed", head, branch, commit, ref, note };
}

/** Brings the private index up to date and writes its tree. */
async function writeTree(
  request: GitRequest,
  { repository, last, isIndexCurrent }: RepositoryState,
): Promise<{ tree: string; note: string | null } | Failure> {
  const { worktree, changes, cacheDirectory } = request;
  const call = callerOf(request);
  const keptIndex = keptIndexOf(request);
  // Under its own name while git works on it: a git that outlives a killed Lazarus must not write into the index of the next one.
  const indexFile = `${keptIndex}-${request.checkpointId}`;
  mkdirSync(cacheDirectory, { recursive: true, mode: 0o700 });
  // Until the state is written again, a crash leaves an index that is not trusted.
  rmSync(stateFileOf(request), { force: true });
  for (const name of readdirSync(cacheDirectory))
    if (name.startsWith("git-index-")) rmSync(join(cacheDirectory, name), { force: true });
  const index: IndexRequest = {
    worktree,
    indexFile,
    isSecret: request.isSecret,
    get secrets() {
      return request.secrets;
    },
    get secretChanges() {
      return request.secretChanges ?? request.secrets;
    },
  };
  const isFew = isIndexCurrent && changes !== undefined && isSimple(worktree, changes);
  if (isFew) renameSync(keptIndex, indexFile);
  const quick = isFew ? await updateIndex(call, index, changes) : undefined;
  const isQuick = quick !== undefined && "note" in quick;
  const updated = isQuick
    ? quick
    : await addEverything(call, index, repository.files[0]!, repository.head !== null);
  if ("failure" in updated) return updated;
  const treeCall = await call(["write-tree"], { indexFile });
  if (treeCall.code !== 0) return { failure: `git write-tree: ${treeCall.stderr}` };
  if (existsSync(indexFile)) renameSync(indexFile, keptIndex);
  return { tree: treeCall.stdout.trim(), note: isQuick ? (last?.note ?? null) : updated.note };
}

function remember(
  request: GitRequest,
  { repository, ground }: RepositoryState,
  { tree, commit, ref, note }: Pick<Remembered, "tree" | "commit" | "ref" | "note">,
): void {
  const { gitDirectory, head } = repository;
  const { checkpointId: checkpoint, headId: since } = request;
  const state: Remembered = { gitDirectory, head, ground, checkpoint, since, tree, commit, ref, note };
  writeFileSync(stateFileOf(request), JSON.stringify(state), { mode: 0o600 });
}

function callerOf({ worktree, environment, timeoutMs }: GitRequest): Call {
  return (args, extra = {}) =>
    git(worktree, args, { environment, ...(timeoutMs === undefined ? {} : { timeoutMs }), ...extra });
}

function stateFileOf({ cacheDirectory }: GitRequest): string {
  return join(cacheDirectory, "git.json");
}

function keptIndexOf({ cacheDirectory }: GitRequest): string {
  return join(cacheDirectory, "git-index");
}

/** Removes the refs of pruned checkpoints, so that git can collect their objects. Best effort. */
export async function forgetCommits(
  worktree: string,
  ids: readonly string[],
  environment: GitOptions["environment"],
): Promise<void> {
  if (ids.length === 0 || !existsSync(join(worktree, ".git"))) return;
  const input = ids.map((id) => `delete ${REF_PREFIX}${id}\n`).join("");
  await git(worktree, ["update-ref", "--stdin"], { environment, input });
}

interface Repository {
  readonly gitDirectory: string;
  readonly head: string | null;
  readonly branch: string | null;
  /** What the last ref points to now; null when it is gone. */
  readonly lastCommit: string | null;
  /** The user's index, then the other files that decide what git sees. */
  readonly files: readonly string[];
}

/** Takes milliseconds, unless a file of the repository is a FIFO. */
const LOOKUP_TIMEOUT_MS = 20_000;
const INPUT_FILES = ["index", "info/exclude", "info/attributes", "config", "config.worktree"];

async function findRepository(call: Call, lastRef: string | undefined): Promise<Repository | Failure> {
  const [paths, objects] = await Promise.all([
    call(
      [
        "rev-parse",
        "--path-format=absolute",
        "--absolute-git-dir",
        ...INPUT_FILES.flatMap((name) => ["--git-path", name]),
      ],
      { timeoutMs: LOOKUP_TIMEOUT_MS },
    ),
    call(["cat-file", "--batch-check=%(objectname)"], {
      timeoutMs: LOOKUP_TIMEOUT_MS,
      input: `HEAD^{commit}\n${lastRef === undefined ? "" : `${lastRef}^{commit}\n`}`,
    }),
  ]);
  if (paths.code !== 0) return { failure: `git: ${paths.stderr || "not usable"}` };
  if (objects.code !== 0) return { failure: `git cat-file: ${objects.stderr}` };
  const [gitDirectory = "", ...files] = paths.stdout.trimEnd().split("\n");
  const [head = null, lastCommit = null] = objects.stdout
    .split("\n")
    .map((line) => (/^[0-9a-f]{40,64}$/.test(line) ? line : null));
  return { gitDirectory, files, head, lastCommit, branch: readBranch(gitDirectory) };
}

/** Taken before git reads them: a later change makes the next checkpoint add everything. */
function stampInputs({ environment, secretRules }: GitRequest, files: readonly string[]): string {
  const { HOME, XDG_CONFIG_HOME } = environment;
  const own = XDG_CONFIG_HOME ?? (HOME === undefined ? undefined : join(HOME, ".config"));
  const users = [
    ...(HOME === undefined ? [] : [join(HOME, ".gitconfig")]),
    ...(own === undefined ? [] : ["config", "ignore", "attributes"].map((name) => join(own, "git", name))),
  ];
  return JSON.stringify([...[...files, ...users].map(stamp), secretRules]);
}

function readBranch(gitDirectory: string): string | null {
  const head = quietly(() => readFileSync(join(gitDirectory, "HEAD"), "utf8")) ?? "";
  return /^ref: refs\/heads\/(.+)$/m.exec(head)?.[1] ?? null;
}

function stamp(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat === undefined ? "absent" : `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
}

function readState(file: string): Remembered | undefined {
  return quietly(() => JSON.parse(readFileSync(file, "utf8")));
}
