// Builds the cell that the bench measures, once: a worktree with a real repository (2,000 commits, packed) and a real
// node_modules from the npm registry. Kept in bench/.work; delete it to build it again.
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runProgram } from "../harness.ts";

/** Chosen for size and number of files: 101,000 files and 900 MB with their dependencies. */
const INSTALLED = [
  "@angular/core@17.0.6",
  "@babel/preset-env@7.23.6",
  "@faker-js/faker@8.3.1",
  "@fluentui/react-icons@2.0.224",
  "@mui/icons-material@5.15.0",
  "@mui/material@5.15.0",
  "@swc/core@1.3.101",
  "@types/node@20.10.5",
  "antd@5.12.0",
  "aws-sdk@2.1500.0",
  "core-js@3.34.0",
  "date-fns@2.30.0",
  "esbuild@0.19.10",
  "firebase@10.7.1",
  "googleapis@128.0.0",
  "lodash@4.17.21",
  "next@14.0.4",
  "rxjs@7.8.1",
  "three@0.159.0",
  "typescript@5.3.3",
  "webpack@5.89.0",
];
/** Their sources are tracked by the repository. */
const TRACKED = ["@faker-js/faker", "core-js", "date-fns", "rxjs"];
const COMMITS = 2000;
const SUBDIRECTORIES = ["meta", "config", "state", "logs", "artifacts"];

export interface CellSize {
  readonly files: number;
  readonly directories: number;
  readonly bytes: number;
  readonly tracked: number;
}

/** Builds the cell at `root` unless it exists; renames it into place at the end. */
export async function buildCell(root: string, say: (text: string) => void): Promise<void> {
  if (existsSync(root)) return;
  const half = `${root}.building`;
  const worktree = join(half, "worktree");
  rmSync(half, { recursive: true, force: true });
  for (const name of SUBDIRECTORIES) mkdirSync(join(half, name), { recursive: true });
  mkdirSync(worktree);
  say("installing node_modules");
  writeFileSync(join(worktree, "package.json"), `${JSON.stringify({ name: "cell", private: true })}\n`);
  const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error"];
  runProgram("npm", ["install", ...options, ...INSTALLED], { cwd: worktree });
  say("creating the repository");
  writeFileSync(join(worktree, ".gitignore"), "node_modules/\n");
  for (const name of TRACKED)
    cpSync(join(worktree, "node_modules", name), join(worktree, "packages", name), { recursive: true });
  await commitInSteps(worktree);
  renameSync(half, root);
}

/** Commits the files step by step with two edits each, through git fast-import, which takes seconds. */
async function commitInSteps(worktree: string): Promise<void> {
  const git = (...args: string[]) => runProgram("git", ["-C", worktree, ...args], { output: true });
  git("init", "--quiet", "--initial-branch=main");
  const paths = readdirSync(worktree, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(worktree.length + 1))
    .filter((path) => !/^(\.git|node_modules)\//.test(path))
    .sort();
  const perCommit = Math.ceil(paths.length / COMMITS);
  const importer = spawn("git", ["-C", worktree, "fast-import", "--quiet"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const ended = once(importer, "close");
  const write = async (text: string | Buffer) => {
    if (!importer.stdin.write(text)) await once(importer.stdin, "drain");
  };
  const put = async (path: string, note: string) => {
    const content = Buffer.concat([readFileSync(join(worktree, path)), Buffer.from(note)]);
    await write(`M 100644 inline ${path}\ndata ${content.length}\n`);
    await write(content);
    await write("\n");
  };
  for (let n = 0; n < COMMITS; n += 1) {
    await write(
      `commit refs/heads/main\ncommitter Bench <bench@localhost> ${1_700_000_000 + n * 600} +0000\n`,
    );
    await write(`data ${String(n).length + 5}\nstep ${n}\n`);
    // Edit earlier files first; each edit is reverted two commits later.
    for (const [back, note] of [
      [1, `// edited in step ${n}\n`],
      [3, ""],
    ] as const)
      for (const path of paths.slice((n - back) * perCommit, (n - back) * perCommit + 2))
        if (n >= back) await put(path, note);
    for (const path of paths.slice(n * perCommit, (n + 1) * perCommit)) await put(path, "");
  }
  importer.stdin.end();
  const [code] = await ended;
  if (code !== 0) throw new Error(`git fast-import exited with ${code}`);
  git("reset", "--quiet", "--hard");
  git("gc", "--quiet");
}

export function measureCell(root: string): CellSize {
  const list = runProgram("find", [root, "-printf", "%y %s\\n"], { output: true });
  let files = 0;
  let directories = 0;
  let bytes = 0;
  for (const line of list.split("\n")) {
    if (line.startsWith("d")) directories += 1;
    if (!line.startsWith("f")) continue;
    files += 1;
    bytes += Number(line.slice(2));
  }
  const tracked =
    runProgram("git", ["-C", join(root, "worktree"), "ls-files"], { output: true }).split("\n").length - 1;
  return { files, directories, bytes, tracked };
}
