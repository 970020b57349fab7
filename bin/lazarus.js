#!/usr/bin/env node
// The launcher: finds a Node that can run Lazarus, turns the compile cache on, then hands over to dist.
// Plain JavaScript that any Node from 20 up can read. It never parses arguments.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NODE_MAJOR_NEEDED = 24;
const here = dirname(fileURLToPath(import.meta.url));
const main = join(here, "../dist/cli/main.js");

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_NEEDED) {
  const { reexecute } = await import("./on-newer-node.js");
  await reexecute(NODE_MAJOR_NEEDED, fileURLToPath(import.meta.url));
} else if (existsSync(main)) {
  const { enableCompileCache } = await import("node:module");
  // A cache of our own below the user's cache directory: the default lies in the shared /tmp.
  const cacheHome = process.env.XDG_CACHE_HOME || (process.env.HOME && join(process.env.HOME, ".cache"));
  if (cacheHome) enableCompileCache(join(cacheHome, "lazarus", "compile"));
  await import(main);
} else {
  process.stderr.write("error: this checkout of Lazarus has not been built yet\n  try: npm run build\n");
  process.exitCode = 1;
}
