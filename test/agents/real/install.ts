// Installs the pinned versions of real agent CLIs from npm, each into its own directory outside the repository:
// LAZARUS_TEST_AGENTS, or ~/.cache/lazarus-test-agents. What is there is not installed again.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export const VERSIONS: Readonly<Record<string, { readonly package: string; readonly version: string }>> =
  JSON.parse(readFileSync(new URL("versions.json", import.meta.url), "utf8"));

export const CACHE = process.env.LAZARUS_TEST_AGENTS ?? join(homedir(), ".cache", "lazarus-test-agents");

/** The directory of the program, or why there is none. */
export function installAgent(name: string): { readonly bin: string } | { readonly problem: string } {
  const { package: pack, version } = VERSIONS[name]!;
  const directory = join(CACHE, `${name}-${version}`);
  const bin = join(directory, "node_modules", ".bin");
  if (existsSync(join(bin, name))) return { bin };
  const temporary = `${directory}.${process.pid}`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  writeFileSync(join(temporary, "package.json"), '{"private":true}\n');
  const install = ["install", "--no-audit", "--no-fund", "--no-save", `${pack}@${version}`];
  const { status, stderr } = spawnSync("npm", install, {
    cwd: temporary,
    encoding: "utf8",
    timeout: 10 * 60_000,
  });
  if (status !== 0) {
    rmSync(temporary, { recursive: true, force: true });
    return { problem: `${pack}@${version} cannot be installed: ${stderr.trim().split("\n").at(-1)}` };
  }
  rmSync(directory, { recursive: true, force: true });
  renameSync(temporary, directory);
  return existsSync(join(bin, name)) ? { bin } : { problem: `${pack}@${version} has no program ${name}` };
}
