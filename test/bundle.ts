// Bundles programs that tests start many times, each into one file with its packages, because resolving and loading
// modules takes longer than the work itself: a LangGraph program starts in 0.1 s instead of 0.7 s.
import { mkdtempSync } from "node:fs";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";

/** Returns the path of the bundle; the source itself without the global setup, which removes the bundle later. */
export async function bundleProgram(source: string): Promise<string> {
  const copy = process.env.LAZARUS_TEST_COPY;
  if (copy === undefined) return source;
  const directory = mkdtempSync(join(copy, "program-"));
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
