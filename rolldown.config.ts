// The build: one small entry for the CLI with a lazy chunk per command, and one entry per library export.
// Dependencies stay outside, so that users' package managers see and update them.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "rolldown";

const manifest = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

/**
 * `import { openSync } from "node:fs"` makes Node evaluate every lazy export of the module (fs.promises, streams,
 * readline …): 4 ms for node:fs and 5 ms for node:util, of the 16 that a hot-path command may add to Node's own
 * start. Taking the module object does not. Sources keep their plain imports; only the bundle is written this way.
 */
function lazyBuiltins(): Plugin {
  const builtin =
    /\bimport\s*(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s*)?(?:\{([^{}]*)\}\s*)?from\s*"(node:[\w/]+)";?/g;
  return {
    name: "lazy-builtins",
    renderChunk: (code) =>
      code.replace(builtin, (_, whole, space, names, id) => {
        const bindings = [whole, space].filter(Boolean);
        if (names) bindings.push(`{${names.replaceAll(/\s+as\s+/g, ":")}}`);
        return bindings.map((binding) => `const ${binding}=process.getBuiltinModule("${id}");`).join("");
      }),
  };
}

/** The keeper's shell script ships as a file, since no JavaScript can import it in the sources and in the bundle alike. */
function keeperScript(): Plugin {
  return {
    name: "keeper-script",
    generateBundle() {
      const source = readFileSync(new URL("src/pit/start/keeper.sh", import.meta.url), "utf8");
      this.emitFile({ type: "asset", fileName: "keeper.sh", source });
    },
  };
}

export default defineConfig({
  input: {
    "cli/main": "src/cli/main.ts",
    index: "src/index.ts",
    run: "src/run/index.ts",
    batteries: "src/run/batteries/index.ts",
    critic: "src/run/critic/index.ts",
    schedule: "src/run/schedule/index.ts",
    langgraph: "src/integrations/langgraph/index.ts",
    testing: "src/testing/index.ts",
    snapshot: "src/snapshot/index.ts",
    flow: "src/flow/index.ts",
    pit: "src/pit/index.ts",
    health: "src/http/health.ts",
    "capture-worker": "src/snapshot/pack/capture-worker.ts",
    "restore-worker": "src/snapshot/restore/restore-worker.ts",
    "pattern-worker": "src/pit/death/pattern-worker.ts",
    "watch-worker": "src/pit/watch/watch-worker.ts",
    "keeper-launch": "src/pit/start/keeper-launch.ts",
    "terminal-host": "src/pit/terminal/terminal-host.ts",
    "arm-crash-point": "src/testing/arm-crash-point.ts",
  },
  platform: "node",
  external: (id) => !id.startsWith(".") && !id.startsWith("/"),
  plugins: [lazyBuiltins(), keeperScript()],
  transform: { target: "node24", define: { LAZARUS_VERSION: JSON.stringify(manifest.version) } },
  output: {
    dir: "dist",
    format: "esm",
    cleanDir: true,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    // Loading a chunk costs half a millisecond: what every command needs is one chunk (these and, by themselves,
    // all their static imports), the rest comes per command.
    // The same for what an agent calls between its steps: the flow commands, the hook and the checkpoint that a pit takes are one more
    // chunk each.
    codeSplitting: {
      groups: [
        {
          name: "core",
          test: /src\/(cli\/dispatch|platform\/machine|platform\/sha256|platform\/shell-word)\.ts$/,
        },
        { name: "checkpoint", test: /src\/cli\/commands\/checkpoints\/checkpoint\.ts$/ },
        { name: "hook", test: /src\/cli\/commands\/agents\/hook\.ts$/ },
        { name: "flow", test: /src\/cli\/commands\/flows\/(start|update|resume|complete|fail|block)\.ts$/ },
      ],
    },
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } },
  },
});
