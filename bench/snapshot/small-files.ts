// Cells of many small files, to check that cost grows linearly with their number. Kept between runs.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const PER_DIRECTORY = 100;
const SUBDIRECTORIES = ["meta", "config", "state", "logs", "artifacts", "worktree"];

/** The path of the n-th file of such a cell. */
export function smallFilePath(n: number): string {
  const outer = `d${Math.floor(n / PER_DIRECTORY / 100)}`;
  return join("worktree", outer, `d${Math.floor(n / PER_DIRECTORY)}`, `file-${n}.txt`);
}

export function buildSmallFiles(root: string, count: number): void {
  if (existsSync(root)) return;
  const half = `${root}.building`;
  rmSync(half, { recursive: true, force: true });
  for (const name of SUBDIRECTORIES) mkdirSync(join(half, name), { recursive: true });
  for (let n = 0; n < count; n += 1) {
    const file = join(half, smallFilePath(n));
    if (n % PER_DIRECTORY === 0) mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${n} `.repeat(20 + (n % 150)));
  }
  renameSync(half, root);
}
