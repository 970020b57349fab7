// Programs that tests start many times over, each put into one file with its packages: Node takes up to three times as
// long to find and load the modules of such a program as the program takes to do its work: a graph of LangGraph starts
// in 0.1 s instead of 0.7.
import { mkdtempSync } from "node:fs";
import { basename, join } from "node:path";
import { rolldown } from "rolldown";

/** The same program in one file; the source itself where there is no set-up to clear the file away. */
export async function bundleProgram(source: string): Promise<string> {
  const copy = process.env.LAZARUS_TEST_COPY;
  if (copy === undefined) return source;
  const directory = mkdtempSync(join(copy, "program-"));
  await using bundle = await rolldown({
    input: source,
    platform: "node",
    // Runs load what they need when they need it, which one file would undo.
    external: ["lazarus/run", "koffi", "pg-native"],
    logLevel: "silent",
  });
  await bundle.write({ dir: directory, format: "esm" });
  return join(directory, basename(source).replace(/\.ts$/, ".js"));
}
