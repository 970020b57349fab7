// Tests of the command line run the real launcher on dist: built once before any of them, and copied, so that a build
// meanwhile takes no chunk away from under a running test. The copy lies below node_modules, where imports still
// find their packages.
import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makePublicCopy, usePublicTemporaryDirectory } from "./plain-user.ts";

const ROOT = join(import.meta.dirname, "..");

export default function setup(): (() => void) | undefined {
  // Vitest calls it for every project.
  if (process.env.LAZARUS_TEST_COPY !== undefined) return undefined;
  usePublicTemporaryDirectory();
  try {
    execFileSync(process.execPath, [join(ROOT, "scripts", "ensure.mjs"), "--build"], { stdio: "inherit" });
  } catch {
    // What cannot be built fails in the tests that run it; the others are still worth running.
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
  // Thousands of short processes compile the same sources: once is enough.
  process.env.NODE_COMPILE_CACHE = join(copy, "compiled");
  compileForVictims();
  const removePublicCopy = makePublicCopy();
  return () => {
    removePublicCopy();
    rmSync(copy, { recursive: true, force: true });
  };
}

/** Node writes the cache when a process ends well, which those that the crash tests start never do. Not waited for. */
function compileForVictims(): void {
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
