// Peers that are installed into a cache, not into the project: they are large, and some run their own compilers.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Installs packages into a directory of the cache, once, and returns it. */
export function installPeer(name: string, packages: readonly string[]): string {
  const directory = join(homedir(), ".cache", "lazarus-bench-peers", name);
  const done = join(directory, "node_modules", ".package-lock.json");
  if (existsSync(done)) return directory;
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true }));
  runPeer("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], directory);
  return directory;
}

let isBuilt = false;

/** The programs of the bench use the product as users do, from dist. */
export function buildProduct(): void {
  if (!isBuilt) runPeer("npm", ["run", "build"], join(import.meta.dirname, "..", ".."));
  isBuilt = true;
}

export function runPeer(program: string, args: readonly string[], cwd: string): void {
  const { status, error } = spawnSync(program, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} in ${cwd} exited with ${status}`);
}
