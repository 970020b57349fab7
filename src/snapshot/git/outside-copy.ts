// Copies what a repository of a cell keeps outside of it into `state/git-outside`, which checkpoints save like any other
// directory: refs and their objects through `git fetch`, HEAD, index and other small files unchanged. Takes time only
// when one of them has changed. Nothing outside the cell is written.
import { hash } from "node:crypto";
import {
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { messageOf, quietly, systemErrorCode } from "../../platform/errors.ts";
import { diskPath, type TreeRoot } from "../model/cell-tree.ts";
import { type GitOptions, type GitResult, git } from "./git-command.ts";
import type { Outside } from "./outside.ts";

export const COPIES = "state/git-outside";
/** In each copy: the path that it belongs to, and what it was made from. */
export const DESCRIPTION = "lazarus.json";
const ALTERNATES = "/objects/info/alternates";

/** Relative to the cell. */
export function copyPathOf(pointer: string): string {
  return `${COPIES}/${hash("sha256", pointer).slice(0, 16)}`;
}

export interface CopyOptions {
  readonly tree: TreeRoot;
  readonly environment: GitOptions["environment"];
}

/** Makes the copy complete. Returns why it is not; undefined when it is. */
export async function copyOutside(
  { path }: Outside,
  { tree, environment }: CopyOptions,
): Promise<string | undefined> {
  const isBorrowing = path.endsWith(ALTERNATES);
  if (!isBorrowing && !path.endsWith(".git")) return "such a repository is not copied";
  const repository = diskPath(tree, isBorrowing ? path.slice(0, -ALTERNATES.length) : dirname(path));
  const copy = diskPath(tree, copyPathOf(path));
  const inRepository: Call = (args, extra) => git(repository, args, { environment, ...extra });
  const inCopy: Call = (args, extra) => git(copy, ["--git-dir=.", ...args], { environment, ...extra });
  try {
    const source = await readSource(inRepository);
    const key = keyOf(source);
    if (readKey(copy) === key) return undefined;
    const { format } = source;
    mkdirSync(copy, { recursive: true, mode: 0o700 });
    rmSync(join(copy, DESCRIPTION), { force: true });
    expect(await git(copy, ["init", "-q", "--bare", "--template=", format, "."], { environment }), "init");
    if (!isBorrowing) copyFiles(source.files, copy);
    // The copied config names the worktree of the original, which this copy does not have.
    await inCopy(["config", "--file", "config", "--unset-all", "core.worktree"]);
    expect(await inCopy(["config", "--file", "config", "core.bare", String(isBorrowing)]), "config");
    // Commits of checkpoints belong to the missions of other cells as well, unless the repository itself is in this one.
    const others = isBorrowing ? [] : ["^refs/lazarus/*"];
    const refs = ["+refs/*:refs/*", ...others, ...(source.head === "" ? [] : ["HEAD"])];
    expect(await inCopy([...FETCH, repository, ...refs]), "fetch");
    const wanted = await findMissing(inRepository, inCopy, source);
    if (wanted.length > 0)
      expect(
        await inCopy([...FETCH, "--no-prune", "--stdin", repository], { input: lines(wanted) }),
        "fetch",
      );
    writeFileSync(join(copy, DESCRIPTION), `${JSON.stringify({ pointer: path, key })}\n`, { mode: 0o600 });
    return undefined;
  } catch (error) {
    if (!(error instanceof GitFailure) && systemErrorCode(error) === undefined) throw error;
    return messageOf(error);
  }
}

type Call = (args: readonly string[], extra?: Partial<GitOptions>) => Promise<GitResult>;

class GitFailure extends Error {}

const FETCH = [
  "fetch",
  "--quiet",
  "--no-tags",
  "--prune",
  "--update-head-ok",
  "--update-shallow",
  "--no-write-fetch-head",
  "--no-recurse-submodules",
];

function expect(result: GitResult, command: string): GitResult {
  if (result.code !== 0) throw new GitFailure(`git ${command}: ${result.stderr.replaceAll("\n", "; ")}`);
  return result;
}

const lines = (texts: readonly string[]) => texts.map((text) => `${text}\n`).join("");

/** What a copy is made from. */
interface SourceState {
  readonly refs: string;
  /** The commit; empty on an unborn branch. */
  readonly head: string;
  /** The option of `git init` for the same kind of object ids. */
  readonly format: string;
  /** Small files, by their name in the git directory. */
  readonly files: ReadonlyMap<string, string>;
}

async function readSource(call: Call): Promise<SourceState> {
  const [places, head, refs] = await Promise.all([
    call([
      "rev-parse",
      "--path-format=absolute",
      "--absolute-git-dir",
      "--git-common-dir",
      "--show-object-format",
    ]),
    call(["rev-parse", "--verify", "-q", "HEAD^{commit}"]),
    call(["for-each-ref", "--format=%(objectname) %(refname)"]),
  ]);
  const [own = "", common = "", format = ""] = expect(places, "rev-parse").stdout.trimEnd().split("\n");
  const shared = ["config", "info/exclude", "info/attributes", "info/sparse-checkout"];
  const files = new Map(shared.map((name) => [name, join(common, name)]));
  for (const name of smallFiles(own)) files.set(name, join(own, name));
  for (const [name, file] of files) if (stampOf(file) === undefined) files.delete(name);
  return {
    refs: expect(refs, "for-each-ref").stdout.replaceAll(/^\S+ refs\/lazarus\/.*\n/gm, ""),
    head: head.stdout.trim(),
    format: `--object-format=${format}`,
    files,
  };
}

/** Fetched, only valid in their place, or not part of the state of a repository. */
const NOT_COPIED =
  /^(?:objects|refs|packed-refs|reftable|shallow|commondir|gitdir|logs|hooks|modules|worktrees|lfs|FETCH_HEAD|description|branches|fsmonitor.*|.*\.lock|tmp_.*)$/;

function smallFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter(({ name }) => !NOT_COPIED.test(name))
    .flatMap((entry) => {
      if (!entry.isDirectory()) return entry.isFile() ? [entry.name] : [];
      const below = readdirSync(join(directory, entry.name), { withFileTypes: true });
      return below.filter((each) => each.isFile()).map(({ name }) => `${entry.name}/${name}`);
    });
}

function stampOf(file: string): string | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  return stat?.isFile() ? `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}` : undefined;
}

function keyOf({ refs, head, files }: SourceState): string {
  return hash(
    "sha256",
    JSON.stringify([refs, head, [...files].map(([name, file]) => [name, stampOf(file)])]),
  );
}

function readKey(copy: string): unknown {
  return quietly(() => JSON.parse(readFileSync(join(copy, DESCRIPTION), "utf8")).key);
}

function copyFiles(files: ReadonlyMap<string, string>, copy: string): void {
  // A merge or rebase that has ended in the meantime.
  for (const name of smallFiles(copy)) if (!files.has(name)) rmSync(join(copy, name));
  for (const [name, file] of files) {
    const target = join(copy, name);
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    rmSync(target, { force: true });
    copyFileSync(file, target);
  }
}

const OBJECT_ID = /\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b/g;
const MAX_TEXT_BYTES = 1 << 20;

/** Objects that only the index or a file like MERGE_HEAD names. */
async function findMissing(inRepository: Call, inCopy: Call, { files }: SourceState): Promise<string[]> {
  const staged = expect(await inRepository(["ls-files", "-s", "-z"]), "ls-files").stdout.split("\0");
  const named = new Set(
    staged.flatMap((line) => (line.startsWith("160000 ") ? [] : (line.split(" ")[1] ?? []))),
  );
  for (const [name, file] of files) {
    const size = lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
    if (name === "index" || name.startsWith("sharedindex") || size > MAX_TEXT_BYTES) continue;
    for (const [id] of readFileSync(file, "latin1").matchAll(OBJECT_ID)) named.add(id);
  }
  const isKnown = async (call: Call, ids: readonly string[]) => {
    const { stdout } = expect(await call(["cat-file", "--batch-check"], { input: lines(ids) }), "cat-file");
    return stdout.split("\n").map((line) => !line.endsWith(" missing"));
  };
  const ids = [...named];
  const held = await isKnown(inCopy, ids);
  const absent = ids.filter((_, i) => !held[i]);
  const exists = await isKnown(inRepository, absent);
  return absent.filter((_, i) => exists[i]);
}
