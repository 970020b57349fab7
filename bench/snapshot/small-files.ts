// Cells of many small files, to check that cost grows linearly with their number. Kept between runs.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PER_DIRECTORY = 100;
const SUBDIRECTORIES = ["meta", "config", "state", "logs", "artifacts", "worktree"];

export function buildSmallFiles(root: string, count: number): void {
  if (existsSync(root)) return;
  const half = `${root}.building`;
  rmSync(half, { recursive: true, force: true });
  for (const name of SUBDIRECTORIES) mkdirSync(join(half, name), { recursive: true });
  for (let n = 0; n < count; n += 1) {
    const directory = join(
      half,
      "worktree",
      `d${Math.floor(n / PER_DIRECTORY / 100)}`,
      `d${Math.floor(n / PER_DIRECTORY)}`,
    );
    if (n % PER_DIRECTORY === 0) mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `file-${n}.txt`), `${n} `.repeat(20 + (n % 150)));
  }
  renameSync(half, root);
}
