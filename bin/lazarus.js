#!/usr/bin/env node
// The launcher: finds a Node that can run Lazarus, enables the compile cache, then loads dist. Plain JavaScript for any
// Node from 20 up. It never parses arguments, and it imports nothing: `import … from "node:fs"` alone would cost 4 ms.
const NODE_MAJOR_NEEDED = 24;

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_NEEDED) {
  const { reexecute } = await import("./on-newer-node.js");
  await reexecute(NODE_MAJOR_NEEDED, import.meta.url);
} else {
  const { XDG_CACHE_HOME, HOME } = process.env;
  // Not the default directory, which is in the shared /tmp.
  const cacheHome = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`);
  if (cacheHome) process.getBuiltinModule("node:module").enableCompileCache(`${cacheHome}/lazarus/compile`);
  const main = new URL("../dist/cli/main.js", import.meta.url);
  try {
    await import(main.href);
  } catch (error) {
    if (error?.code !== "ERR_MODULE_NOT_FOUND" || error.url !== main.href) throw error;
    process.stderr.write("error: this checkout of Lazarus has not been built yet\n  try: npm run build\n");
    process.exitCode = 1;
  }
}
