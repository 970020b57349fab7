// Tests of the command line run the real launcher on dist. It is built once and copied, so that a build during the tests
// does not remove chunks from a running process. The copy is below node_modules, so that its imports find their packages.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { makePublicCopy, usePublicTemporaryDirectory } from "./plain-user.ts";
import { makeScratchInMemory } from "./scratch-directory.ts";

const ROOT = join(import.meta.dirname, "..");

export default function setup(): (() => Promise<void>) | undefined {
  // Vitest calls it for every project.
  if (process.env.LAZARUS_TEST_COPY !== undefined) return undefined;
  const scratch = process.env.TMPDIR === undefined ? makeScratchInMemory() : undefined;
  if (scratch !== undefined) process.env.TMPDIR = scratch;
  usePublicTemporaryDirectory();
  try {
    execFileSync(process.execPath, [join(ROOT, "scripts", "ensure.mjs"), "--build"], { stdio: "inherit" });
  } catch {
    // Unit tests do not need dist.
    process.stderr.write("lazarus: dist could not be built, so tests of the command line will fail\n");
    return undefined;
  }
  mkdirSync(join(ROOT, "node_modules", ".cache"), { recursive: true });
  const copy = mkdtempSync(join(ROOT, "node_modules", ".cache", "lazarus-test-"));
  // Tests of permissions run it as another user.
  chmodSync(copy, 0o755);
  for (const name of ["bin", "dist", "package.json"]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  process.env.LAZARUS_TEST_COPY = copy;
  // Thousands of short processes share one compile cache.
  process.env.NODE_COMPILE_CACHE = join(copy, "compiled");
  warmCompileCache();
  const publicCopy = makePublicCopy();
  // Asynchronously: if this took ten seconds without a break, Vitest would report that it cannot end its workers, which
  // have long ended.
  return async () => {
    for (const directory of [publicCopy, copy, scratch]) {
      if (directory !== undefined) await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    }
  };
}

/** Fills the compile cache in the background: Node writes it at a clean exit, and processes of crash tests never exit cleanly. */
function warmCompileCache(): void {
  const loads = [
    "src/testing/arm-crash-point.ts",
    "src/snapshot/index.ts",
    "src/flow/index.ts",
    "src/run/index.ts",
    "src/testing/scripted-model.ts",
    "test/snapshot/lab.ts",
    "test/snapshot/restore-world.ts",
  ].map((path) => `import ${JSON.stringify(join(ROOT, path))};`);
  spawn(process.execPath, ["--input-type=module", "-e", loads.join("")], { stdio: "ignore" });
}
