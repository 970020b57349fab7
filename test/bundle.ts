// Bundles programs that tests start many times, each into one file with its packages, because resolving and loading
// modules takes longer than the work itself: the victim of a kill loop starts in 40 ms of CPU time instead of 100, a
// LangGraph program in 0.1 s instead of 0.7 s.
import { mkdtempSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";

const COPY = process.env.LAZARUS_TEST_COPY;
const bundles = new Map<string, Promise<string>>();

/** For `node --import`: kills the process at the crash point that LAZARUS_CRASH_AT names. */
export const ARM =
  COPY === undefined
    ? fileURLToPath(new URL("../src/testing/arm-crash-point.ts", import.meta.url))
    : join(COPY, "dist", "arm-crash-point.js");

/** Returns the path of the bundle; the source itself without the global setup, which removes the bundle later. */
export function bundleProgram(source: string): Promise<string> {
  if (COPY === undefined) return Promise.resolve(source);
  const bundle = bundles.get(source) ?? bundleInto(join(COPY, "dist"), source);
  bundles.set(source, bundle);
  return bundle;
}

/** Below dist, where the program finds the workers of Lazarus. */
async function bundleInto(dist: string, source: string): Promise<string> {
  const directory = mkdtempSync(join(dist, "program-"));
  await using bundle = await rolldown({
    input: source,
    platform: "node",
    // Kept external because they are loaded lazily.
    external: ["lazarus/run", "koffi", "pg-native"],
    logLevel: "silent",
  });
  await bundle.write({ dir: directory, format: "esm" });
  return join(directory, basename(source).replace(/\.ts$/, ".js"));
}
