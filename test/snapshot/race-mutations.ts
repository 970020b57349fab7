// What the race harness does to a cell while it is captured or restored: a table of small changes, each chosen by a seed. To
// test another race, add a row; if its result can be judged, add a check to race-rounds.ts.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { basename, dirname, join } from "node:path";
import { openLibrary } from "../../src/platform/posix.ts";
import type { Random } from "../../src/testing/index.ts";
import { isInstalled, reportSkipped } from "./tools.ts";

export interface RaceTree {
  /** The worktree that is changed. */
  readonly root: string;
  /** A directory next to the cell, to which links point. Nothing may read or write through them. */
  readonly outside: string;
  /** Where directories of the cell are moved to, and from where they are moved back. */
  readonly elsewhere: string;
  /** A git repository in the cell, which only git changes. Absent without git. */
  readonly repository: string;
  /** A file in the cell that is only changed through a memory mapping, all of it to one letter. */
  readonly mapped: string;
}

/** What a race uses, in a cell and in the directory around its worktree; only the worktree exists yet. */
export function raceTree(directory: string, cell: string, worktree: string): RaceTree {
  return {
    root: worktree,
    outside: join(directory, "outside"),
    elsewhere: join(directory, "elsewhere"),
    repository: join(cell, "artifacts/repository"),
    mapped: join(cell, "artifacts/mapped"),
  };
}

export const TOKENS = 16;
const DIRECTORIES = ["a", "b", "c", "a/sub", "b/sub", "b/sub/deep"];
export const OUTSIDE_CONTENT = "OUTSIDE";

/** Tokens are moved, but never changed or deleted: each has its own content. `static` files are not touched at all. */
export function fillTree(tree: RaceTree, random: Random): void {
  const { root, outside, elsewhere, repository, mapped } = tree;
  for (const directory of [outside, elsewhere]) fs.mkdirSync(directory);
  fs.mkdirSync(dirname(mapped), { recursive: true });
  fs.writeFileSync(mapped, versionOf(0, MAPPED_BYTES));
  if (canCommit) {
    fs.mkdirSync(repository);
    git(repository, "init", "-q");
    commit(repository);
  }
  for (const name of ["static", "token-0", "v0", "secret"])
    fs.writeFileSync(join(outside, name), OUTSIDE_CONTENT);
  for (const path of DIRECTORIES) {
    fs.mkdirSync(join(root, path), { recursive: true });
    fs.writeFileSync(join(root, path, "static"), `static in ${path}`);
  }
  for (let i = 0; i < TOKENS; i += 1)
    fs.writeFileSync(join(root, random.pick(DIRECTORIES), `token-${i}`), `token ${i}`);
  for (let i = 0; i < 8; i += 1)
    fs.writeFileSync(join(root, random.pick(DIRECTORIES), `v${i}`), versionOf(i, random.int(0, 5000)));
}

const canCommit = isInstalled("git", "races of commits with checkpoints");

export function git(repository: string, ...args: string[]): string {
  const who = [
    "-c",
    "user.name=a",
    "-c",
    "user.email=a@a",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
  ];
  return execFileSync("git", ["-C", repository, ...who, ...args], { encoding: "utf8", stdio: "pipe" }).trim();
}

function commit(repository: string): void {
  counter += 1;
  fs.writeFileSync(join(repository, "file"), `content ${counter}`);
  git(repository, "add", "file");
  git(repository, "commit", "-qm", `commit ${counter}`);
}

/** Git fails while a restore replaces its files. */
function whileIntact(repository: string, change: () => void): void {
  try {
    if (!fs.existsSync(repository)) throw new Inapplicable();
    change();
  } catch {
    throw new Inapplicable();
  }
}

const MAPPED_BYTES = 8192;
const [PROT_READ, PROT_WRITE, MAP_SHARED] = [1, 2, 1];
/** Files that this process has mapped, by path. They stay mapped until it exits. */
const mappings = new Map<string, (letter: number) => void>();

/** Fills a file with a letter, through a mapping that stays. */
function writeMapped(file: string, letter: number): void {
  let fill = mappings.get(file);
  if (fill === undefined) {
    fill = mapFile(file);
    mappings.set(file, fill);
  }
  fill(letter);
}

function mapFile(file: string): (letter: number) => void {
  if (!canMap) throw new Inapplicable();
  const libc = openLibrary("libc.so.6");
  const mmap = libc.func(
    "void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset)",
  );
  const memset = libc.func("void *memset(void *to, int value, size_t length)");
  const fd = fs.openSync(file, "r+");
  try {
    if (fs.fstatSync(fd).size !== MAPPED_BYTES) throw new Inapplicable();
    const address = mmap(null, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return (letter) => void memset(address, letter, MAPPED_BYTES);
  } finally {
    fs.closeSync(fd);
  }
}

const canMap = hasGlibc();

function hasGlibc(): boolean {
  try {
    openLibrary("libc.so.6");
    return process.platform === "linux";
  } catch {
    reportSkipped("races of writes through mappings with checkpoints", "there is no libc.so.6");
    return false;
  }
}

/** Content that shows whether it is complete: one letter. */
export function versionOf(number: number, length: number): string {
  return String.fromCharCode(97 + (number % 26)).repeat(length);
}

interface MutationTools {
  readonly tree: RaceTree;
  readonly random: Random;
  /** A name that was not used before. */
  fresh(prefix: string): string;
  /** The real directories of the worktree; `all` includes the worktree itself. */
  directory(all?: boolean): string;
  /** A file whose name matches. */
  file(name: RegExp): string;
}

type Mutation = (tools: MutationTools) => void;

/** Not applicable now; the next change is made instead. */
class Inapplicable extends Error {}

export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  "move a token": ({ file, directory }) => {
    const from = file(/^token-/);
    fs.renameSync(from, join(directory(true), basename(from)));
  },
  "move a directory": ({ directory, fresh }) => {
    const from = directory();
    const to = directory(true);
    if (`${to}/`.startsWith(`${from}/`)) throw new Inapplicable();
    fs.renameSync(from, join(to, fresh("moved")));
  },
  "move a directory out of the cell": ({ tree, directory, fresh }) =>
    fs.renameSync(directory(), join(tree.elsewhere, fresh("out"))),
  "move a directory into the cell": ({ tree, random, directory, fresh }) => {
    const names = fs.readdirSync(tree.elsewhere);
    if (names.length === 0) throw new Inapplicable();
    fs.renameSync(join(tree.elsewhere, random.pick(names)), join(directory(true), fresh("in")));
  },
  "replace a directory by a link": ({ tree, random, directory, fresh }) => {
    const from = directory();
    const to = join(dirname(from), fresh("swapped"));
    fs.renameSync(from, to);
    fs.symlinkSync(random.pick([basename(to), tree.outside]), from);
  },
  "replace a link by a directory": ({ tree, random }) => {
    const links = pathsBelow(tree.root).filter(({ type }) => type === "link");
    if (links.length === 0) throw new Inapplicable();
    const { path } = random.pick(links);
    fs.unlinkSync(path);
    fs.mkdirSync(path);
  },
  "change the type of a path": ({ tree, random, file, fresh }) => {
    const path = file(/^v\d/);
    fs.unlinkSync(path);
    if (random.chance(0.5)) fs.mkdirSync(path);
    else fs.symlinkSync(random.pick([tree.outside, fresh("nowhere"), "static"]), path);
  },
  "replace a file": ({ random, file, fresh }) => {
    const path = file(/^v\d/);
    const temporary = join(dirname(path), fresh("tmp"));
    fs.writeFileSync(temporary, versionOf(random.int(0, 25), random.int(0, 9000)));
    fs.renameSync(temporary, path);
  },
  "rewrite a file": ({ random, file }) => {
    const path = file(/^v\d/);
    fs.writeFileSync(path, versionOf(random.int(0, 25), fs.statSync(path).size));
  },
  "truncate a file": ({ random, file }) => {
    const path = file(/^v\d/);
    fs.truncateSync(path, random.int(0, fs.statSync(path).size));
  },
  "rename one file over another": ({ file }) => {
    const [from, to] = [file(/^v\d/), file(/^v\d/)];
    if (from !== to) fs.renameSync(from, to);
  },
  "link a file": ({ file, directory, fresh }) =>
    fs.linkSync(file(/^v\d/), join(directory(true), fresh("v9-link"))),
  "remove a file": ({ file }) => fs.unlinkSync(file(/^v9-link|^new/)),
  "create a file": ({ random, directory, fresh }) =>
    fs.writeFileSync(join(directory(true), fresh("new")), versionOf(1, random.int(0, 100))),
  "change a mode": ({ random, file, directory }) => {
    if (random.chance(0.5)) fs.chmodSync(directory(), random.pick([0o700, 0o755]));
    else fs.chmodSync(file(/^v\d/), random.pick([0o600, 0o644, 0o755]));
  },
  commit: ({ tree }) => whileIntact(tree.repository, () => commit(tree.repository)),
  "commit and pack": ({ tree, random }) =>
    whileIntact(tree.repository, () => {
      commit(tree.repository);
      if (random.chance(0.5)) git(tree.repository, "gc", "-q");
      else git(tree.repository, "pack-refs", "--all");
    }),
  "write through a mapping": ({ tree, random }) => writeMapped(tree.mapped, 97 + random.int(0, 25)),
};

/** Changes that keep every token inside the cell. */
export const INSIDE = Object.keys(MUTATIONS).filter((name) => !name.includes("of the cell"));

let counter = 0;

/** Makes one change, and returns its name. */
export function mutate(tree: RaceTree, random: Random, names = Object.keys(MUTATIONS)): string {
  const tools: MutationTools = {
    tree,
    random,
    fresh(prefix) {
      counter += 1;
      return `${prefix}-${counter}`;
    },
    directory: (all = false) =>
      pick(random, [
        ...(all ? [tree.root] : []),
        ...pathsBelow(tree.root).flatMap(({ path, type }) => (type === "directory" ? [path] : [])),
      ]),
    file: (name) =>
      pick(
        random,
        pathsBelow(tree.root).flatMap(({ path, type }) =>
          type === "file" && name.test(basename(path)) ? [path] : [],
        ),
      ),
  };
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const name = random.pick(names);
    try {
      MUTATIONS[name]!(tools);
      return name;
    } catch (error) {
      // A restore that is running changes the tree, too.
      if (!(error instanceof Inapplicable) && (error as NodeJS.ErrnoException).code === undefined)
        throw error;
    }
  }
  return "nothing";
}

function pick(random: Random, paths: readonly string[]): string {
  if (paths.length === 0) throw new Inapplicable();
  return random.pick(paths);
}

interface Seen {
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
}

/** Every path below a directory, links not followed, sorted. */
export function pathsBelow(directory: string): Seen[] {
  const found: Seen[] = [];
  const visit = (parent: string) => {
    for (const entry of listNames(parent)) {
      const path = join(parent, entry.name);
      const type = entry.isDirectory()
        ? "directory"
        : entry.isFile()
          ? "file"
          : entry.isSymbolicLink()
            ? "link"
            : "other";
      found.push({ path, type });
      if (type === "directory") visit(path);
    }
  };
  visit(directory);
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function listNames(directory: string): fs.Dirent[] {
  try {
    return fs.readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** The paths of each token below a directory. */
export function findTokens(directory: string): Map<string, string[]> {
  const tokens = new Map<string, string[]>();
  for (const { path, type } of pathsBelow(directory)) {
    const name = basename(path);
    if (type !== "file" || !name.startsWith("token-")) continue;
    if (readText(path) !== name.replace("-", " ")) continue;
    tokens.set(name, [...(tokens.get(name) ?? []), path.slice(directory.length + 1)]);
  }
  return tokens;
}

function readText(path: string): string {
  try {
    return fs.readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
