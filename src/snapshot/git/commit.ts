// Commits the worktree's full visible state (tracked + untracked, not ignored) to refs/lazarus/checkpoints/<id> through
// a private index. The user's HEAD, branch, index, stash, reflog and hooks are never touched. The private index is kept
// between checkpoints, so that a few changed files cost a few git calls and no second walk. Any failure makes this part
// degraded and says so; the layers stay the truth.
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
import { systemErrorCode } from "../../platform/errors.ts";
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

export interface GitRequest {
  readonly worktree: string;
  readonly checkpointId: string;
  readonly createdAtMs: number;
  /** The checkpoint that `changes` counts from. */
  readonly headId: string | null;
  readonly cacheDirectory: string;
  readonly environment: GitOptions["environment"];
  /** Changed and removed paths relative to the worktree, when they are known; undefined means "look at everything". */
  readonly changes: PathChanges | undefined;
  /** Paths that the deny-list of secrets matches, and the list itself in a comparable form. */
  readonly secrets: readonly string[];
  /** Those among the changes, at least: to find all of them, every path is compared with every pattern. */
  readonly secretChanges?: readonly string[];
  readonly isSecret: (path: string) => boolean;
  readonly secretRules: string;
  /** How long one call of git may take. */
  readonly timeoutMs?: number;
  /** The answer to a question that was asked in advance. */
  readonly place?: Promise<Place | Failure> | undefined;
}

interface Failure {
  readonly failure: string;
}

/** What the last commit was made from; valid only while all of it still holds. */
interface Remembered {
  readonly gitDirectory: string;
  readonly head: string | null;
  readonly tree: string;
  readonly commit: string;
  readonly ref: string;
  /** Stat of everything that decides what git sees: index, rules, configuration. */
  readonly ground: string;
  readonly note: string | null;
  /** The checkpoint that this was made for, and the one it counted changes from. */
  readonly checkpoint: string;
  readonly since: string | null;
}

const REF_PREFIX = "refs/lazarus/checkpoints/";
const NOWHERE = { head: null, branch: null, commit: null, ref: null } as const;

/** The repository's own directory, when it lies in the worktree as a directory. */
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

/**
 * Asks where the repository is and where it stands, so that the answer is there when it is needed. Undefined where git is
 * not to be asked, or where there is none.
 */
export function askForPlace(
  request: Pick<GitRequest, "worktree" | "cacheDirectory" | "environment" | "timeoutMs">,
): Promise<Place | Failure> | undefined {
  const { worktree } = request;
  if (lstatSync(worktree, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  if (statOfGit(worktree) === undefined) return undefined;
  return findPlace(callerOf(request), readState(stateFileOf(request))?.ref);
}

export async function commitWorktree(request: GitRequest): Promise<GitPosition> {
  if (statOfGit(request.worktree) === undefined)
    return { status: "none", ...NOWHERE, note: "the worktree is no git repository" };
  try {
    return await commitVisible(request);
  } catch (error) {
    // The cache directory may be full or read-only: that is no reason to lose the checkpoint.
    const why = error instanceof Error ? error.message : String(error);
    return { status: "degraded", ...NOWHERE, note: `git commit: ${why}` };
  }
}

async function commitVisible(request: GitRequest): Promise<GitPosition> {
  const { worktree, changes } = request;
  const call = callerOf(request);
  const degraded = (note: string, position: Partial<GitPosition> = {}): GitPosition => ({
    ...NOWHERE,
    ...position,
    status: "degraded",
    // Git says much on many lines; here it is part of a sentence.
    note: note.replaceAll("\n", "; "),
  });
  const keptIndex = join(request.cacheDirectory, "git-index");
  // A name of its own while git works on it: a git that outlives a killed Lazarus must not write into the next one's.
  const indexFile = `${keptIndex}-${request.checkpointId}`;
  const stateFile = stateFileOf(request);
  const last = readState(stateFile);
  const place = await (request.place ?? findPlace(call, last?.ref));
  if ("failure" in place) return degraded(place.failure);
  const { gitDirectory, head, branch } = place;
  const ground = stampGround(request, place.files);
  const isLast =
    last !== undefined &&
    last.gitDirectory === gitDirectory &&
    last.head === head &&
    last.commit === place.lastCommit;
  const isSameGround =
    isLast &&
    last.ground === ground &&
    request.headId !== null &&
    (last.checkpoint === request.headId || last.since === request.headId) &&
    existsSync(keptIndex);
  const remember = (known: Pick<Remembered, "tree" | "commit" | "ref" | "note">) => {
    const { checkpointId: checkpoint, headId: since } = request;
    const { tree, commit, ref, note } = known;
    const state: Remembered = { gitDirectory, head, ground, checkpoint, since, tree, commit, ref, note };
    writeFileSync(stateFile, JSON.stringify(state), { mode: 0o600 });
  };
  if (isSameGround && changes !== undefined && changes.present.length + changes.removed.length === 0) {
    remember(last);
    return { status: "unchanged", head, branch, commit: last.commit, ref: last.ref, note: last.note };
  }

  mkdirSync(request.cacheDirectory, { recursive: true, mode: 0o700 });
  // Until the state is written again, a crash leaves an index that nobody trusts.
  rmSync(stateFile, { force: true });
  for (const name of readdirSync(request.cacheDirectory))
    if (name.startsWith("git-index-")) rmSync(join(request.cacheDirectory, name), { force: true });
  const own: IndexRequest = {
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
  const isFew = isSameGround && changes !== undefined && isSimple(worktree, changes);
  if (isFew) renameSync(keptIndex, indexFile);
  const quick = isFew ? await updateIndex(call, own, changes) : undefined;
  const isQuick = quick !== undefined && "note" in quick;
  const updated = isQuick ? quick : await addEverything(call, own, place.files[0]!, head !== null);
  if ("failure" in updated) return degraded(updated.failure, { head, branch });
  const note = isQuick ? (last?.note ?? null) : updated.note;

  const treeCall = await call(["write-tree"], { indexFile });
  if (treeCall.code !== 0) return degraded(`git write-tree: ${treeCall.stderr}`, { head, branch });
  const tree = treeCall.stdout.trim();
  if (existsSync(indexFile)) renameSync(indexFile, keptIndex);
  if (isLast && last.tree === tree) {
    remember({ tree, commit: last.commit, ref: last.ref, note });
    return { status: "unchanged", head, branch, commit: last.commit, ref: last.ref, note };
  }
  const commitCall = await call(["commit-tree", tree, ...(head === null ? [] : ["-p", head])], {
    date: `@${Math.floor(request.createdAtMs / 1000)} +0000`,
    input: `lazarus checkpoint ${request.checkpointId}\n`,
  });
  if (commitCall.code !== 0) return degraded(`git commit-tree: ${commitCall.stderr}`, { head, branch });
  const commit = commitCall.stdout.trim();
  const ref = REF_PREFIX + request.checkpointId;
  const refCall = await call(["update-ref", ref, commit]);
  if (refCall.code !== 0) return degraded(`git update-ref: ${refCall.stderr}`, { head, branch, commit });
  remember({ tree, commit, ref, note });
  return { status: "committed", head, branch, commit, ref, note };
}

function callerOf({
  worktree,
  environment,
  timeoutMs,
}: Pick<GitRequest, "worktree" | "environment" | "timeoutMs">): Call {
  return (args, extra = {}) =>
    git(worktree, args, { environment, ...(timeoutMs === undefined ? {} : { timeoutMs }), ...extra });
}

function stateFileOf({ cacheDirectory }: Pick<GitRequest, "cacheDirectory">): string {
  return join(cacheDirectory, "git.json");
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

interface Place {
  readonly gitDirectory: string;
  readonly head: string | null;
  readonly branch: string | null;
  /** Where the last ref points now; null when it is gone. */
  readonly lastCommit: string | null;
  /** The user's index, then what else decides what git sees. */
  readonly files: readonly string[];
}

/** These take milliseconds, unless a file of the repository is a FIFO. */
const FIRST_ANSWER_MS = 20_000;
const DECIDING = ["index", "info/exclude", "info/attributes", "config", "config.worktree"];

async function findPlace(call: Call, lastRef: string | undefined): Promise<Place | Failure> {
  const [place, objects] = await Promise.all([
    call(
      [
        "rev-parse",
        "--path-format=absolute",
        "--absolute-git-dir",
        ...DECIDING.flatMap((name) => ["--git-path", name]),
      ],
      { timeoutMs: FIRST_ANSWER_MS },
    ),
    call(["cat-file", "--batch-check=%(objectname)"], {
      timeoutMs: FIRST_ANSWER_MS,
      input: `HEAD^{commit}\n${lastRef === undefined ? "" : `${lastRef}^{commit}\n`}`,
    }),
  ]);
  if (place.code !== 0) return { failure: `git: ${place.stderr || "not usable"}` };
  if (objects.code !== 0) return { failure: `git cat-file: ${objects.stderr}` };
  const [gitDirectory = "", ...files] = place.stdout.trimEnd().split("\n");
  const [head = null, lastCommit = null] = objects.stdout
    .split("\n")
    .map((line) => (/^[0-9a-f]{40,64}$/.test(line) ? line : null));
  return { gitDirectory, files, head, lastCommit, branch: readBranch(gitDirectory) };
}

/** Taken before git looks: what changes meanwhile makes the next checkpoint look at everything. */
function stampGround({ environment, secretRules }: GitRequest, files: readonly string[]): string {
  const { HOME, XDG_CONFIG_HOME } = environment;
  const own = XDG_CONFIG_HOME ?? (HOME === undefined ? undefined : join(HOME, ".config"));
  const users = [
    ...(HOME === undefined ? [] : [join(HOME, ".gitconfig")]),
    ...(own === undefined ? [] : ["config", "ignore", "attributes"].map((name) => join(own, "git", name))),
  ];
  return JSON.stringify([...[...files, ...users].map(stamp), secretRules]);
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
