// The index from which checkpoints are committed: a file in the cache directory, never the user's own. Updated from a list
// of changes when that is safe, otherwise by `git add --all`. Secrets that git does not track are not added, so that
// neither the commit nor any object of the repository holds them (INV-7).
import { copyFileSync, existsSync, rmSync, statSync, utimesSync } from "node:fs";
import { decodePath, encodePath, parentPath, systemPath } from "../model/path-bytes.ts";
import type { GitOptions, GitResult } from "./git-command.ts";

export type Call = (args: readonly string[], extra?: Partial<GitOptions>) => Promise<GitResult>;

/** Paths relative to the worktree. */
export interface PathChanges {
  readonly present: readonly string[];
  readonly removed: readonly string[];
}

export interface IndexRequest {
  readonly worktree: string;
  readonly indexFile: string;
  /** All secret files in the worktree. */
  readonly secrets: readonly string[];
  /** At least the secret files among the changes. */
  readonly secretChanges: readonly string[];
  readonly isSecret: (path: string) => boolean;
}

export type Updated = { readonly failure: string } | { readonly note: string | null };

const MAX_CHANGES = 2000;
const READ_BY_GIT = /(^|\/)\.git(ignore|attributes|modules)?(\/|$)/;

/** Only changes of ordinary files: ignore rules, submodules and nested repositories need `git add --all`. */
export function isSimple(worktree: string, changes: PathChanges): boolean {
  const all = [...changes.present, ...changes.removed];
  if (all.length > MAX_CHANGES || all.some((path) => READ_BY_GIT.test(path))) return false;
  const directories = new Set<string>(changes.present);
  for (const path of all) {
    for (let up = parentPath(path); up !== "." && !directories.has(up); up = parentPath(up))
      directories.add(up);
  }
  for (const directory of directories)
    if (existsSync(systemPath(`${worktree}/${directory}/.git`))) return false;
  return true;
}

/** Applies a few changes. After a failure the caller adds everything. */
export async function updateIndex(
  call: Call,
  { indexFile, secretChanges }: IndexRequest,
  changes: PathChanges,
): Promise<Updated> {
  const secret = new Set(secretChanges);
  const tracked = changes.present.some((path) => secret.has(path))
    ? await listTracked(call, indexFile)
    : secret;
  if (!(tracked instanceof Set)) return tracked;
  let visible = changes.present.filter((path) => !secret.has(path) || tracked.has(path));
  if (visible.length > 0) {
    const ignored = await findIgnored(call, indexFile, visible);
    if (!(ignored instanceof Set)) return ignored;
    visible = visible.filter((path) => !ignored.has(path));
  }
  // Removed even if the name exists again: it may now be an ignored file or a secret, which must not be added.
  return (
    (await change(call, indexFile, ["--force-remove"], changes.removed)) ??
    (await change(call, indexFile, ["--add", "--remove", "--replace"], visible)) ?? { note: null }
  );
}

async function change(
  call: Call,
  indexFile: string,
  how: readonly string[],
  paths: readonly string[],
): Promise<{ failure: string } | undefined> {
  if (paths.length === 0) return undefined;
  const update = await call(["update-index", ...how, "-z", "--stdin"], { indexFile, input: joinNul(paths) });
  return update.code === 0 ? undefined : { failure: `git update-index: ${update.stderr}` };
}

const WITHOUT_COMMIT = /'(.+?)\/?' does not have a commit checked out/;
/** Files that appear and disappear while git reads: worth another attempt. */
const TRANSIENT = /No such file or directory|unable to stat|unable to index file|short read|File exists/;
const TRANSIENT_RETRIES = 2;
const RETRIES = 50;

/** Starts from a copy of the user's index, whose stat data saves git from hashing every file. */
export async function addEverything(
  call: Call,
  request: IndexRequest,
  userIndexFile: string,
  hasHead: boolean,
): Promise<Updated> {
  const { indexFile } = request;
  copyIndex(userIndexFile, indexFile);
  const tracked = await listTracked(call, indexFile);
  if (!(tracked instanceof Set)) return tracked;
  const hidden = await untrackedSecrets(call, request, tracked);
  const without: string[] = [];
  let transient = 0;
  for (let attempt = 0; attempt < RETRIES; attempt += 1) {
    const result = await call(
      ["add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul"],
      {
        indexFile,
        input: joinNul([".", ...[...without, ...hidden].map((path) => `:(exclude,literal)${path}`)]),
      },
    );
    if (result.code === 0) {
      const late = await dropLateSecrets(call, request, tracked, hasHead);
      if (late.failure !== undefined) return { failure: late.failure };
      return { note: describe(without, hidden.length + late.dropped) };
    }
    const empty = WITHOUT_COMMIT.exec(result.stderr)?.[1];
    if (empty !== undefined && !without.includes(empty)) without.push(empty);
    else if (TRANSIENT.test(result.stderr) && transient < TRANSIENT_RETRIES) transient += 1;
    else return { failure: `git add: ${result.stderr}` };
  }
  return { failure: "git add: too many nested repositories without a commit" };
}

function describe(without: readonly string[], secrets: number): string | null {
  const notes: string[] = [];
  if (without.length > 0)
    notes.push(`not in the git commit, because they have no commit yet: ${without.join(", ")}`);
  if (secrets > 0)
    notes.push(`not in the git commit, because git does not track them: ${secrets} secret files`);
  return notes.length === 0 ? null : notes.join("; ");
}

function copyIndex(userIndexFile: string, indexFile: string): void {
  rmSync(indexFile, { force: true });
  rmSync(`${indexFile}.lock`, { force: true });
  try {
    const stat = statSync(userIndexFile, { throwIfNoEntry: false });
    if (stat === undefined) return;
    copyFileSync(userIndexFile, indexFile);
    // Git rehashes entries that are not older than their index. A copy with a newer time would make it miss changes
    // of the same second.
    const seconds = Math.max(1, Math.floor(stat.mtimeMs / 1000));
    utimesSync(indexFile, seconds, seconds);
  } catch {
    // The user's git replaces its index by rename; without a copy, git only has to hash more.
    rmSync(indexFile, { force: true });
  }
}

async function listTracked(call: Call, indexFile: string): Promise<Set<string> | { failure: string }> {
  const listed = await call(["ls-files", "-z", "--cached"], { indexFile });
  return listed.code === 0 ? splitNul(listed.bytes) : { failure: `git ls-files: ${listed.stderr}` };
}

async function findIgnored(
  call: Call,
  indexFile: string,
  paths: readonly string[],
): Promise<Set<string> | { failure: string }> {
  const ask = (...options: string[]) =>
    call(["check-ignore", ...options, "-z", "--stdin"], { indexFile, input: joinNul(paths) });
  // First by the rules alone, which avoids reading a large index; tracked files are never ignored.
  let ignored = await ask("--no-index");
  if (ignored.code === 0) ignored = await ask();
  if (ignored.code !== 0 && ignored.code !== 1) return { failure: `git check-ignore: ${ignored.stderr}` };
  return splitNul(ignored.bytes);
}

/** Secrets that git would add: neither tracked nor ignored. */
async function untrackedSecrets(
  call: Call,
  { indexFile, secrets }: IndexRequest,
  tracked: ReadonlySet<string>,
): Promise<string[]> {
  const untracked = secrets.filter((path) => !tracked.has(path));
  if (untracked.length === 0) return [];
  const ignored = await findIgnored(call, indexFile, untracked);
  // Excluding too much is safe.
  return ignored instanceof Set ? untracked.filter((path) => !ignored.has(path)) : untracked;
}

/** Removes secrets that appeared between the walk and `git add`. */
async function dropLateSecrets(
  call: Call,
  { indexFile, isSecret }: IndexRequest,
  tracked: ReadonlySet<string>,
  hasHead: boolean,
): Promise<{ failure?: string; dropped: number }> {
  const added = await call(
    hasHead
      ? ["diff-index", "--cached", "--name-only", "--no-renames", "--diff-filter=A", "-z", "HEAD"]
      : ["ls-files", "-z", "--cached"],
    { indexFile },
  );
  if (added.code !== 0) return { failure: `git diff-index: ${added.stderr}`, dropped: 0 };
  const late = [...splitNul(added.bytes)].filter((path) => isSecret(path) && !tracked.has(path));
  if (late.length === 0) return { dropped: 0 };
  const removal = await call(["update-index", "--force-remove", "-z", "--stdin"], {
    indexFile,
    input: joinNul(late),
  });
  if (removal.code !== 0) return { failure: `git update-index: ${removal.stderr}`, dropped: 0 };
  return { dropped: late.length };
}

function joinNul(paths: readonly string[]): Buffer {
  return Buffer.concat(paths.flatMap((path) => [encodePath(path), Buffer.of(0)]));
}

function splitNul(bytes: Buffer): Set<string> {
  const paths = new Set<string>();
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(0, start);
    const stop = end < 0 ? bytes.length : end;
    paths.add(decodePath(bytes.subarray(start, stop)));
    start = stop + 1;
  }
  return paths;
}
