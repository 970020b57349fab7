// Two builds: the library with one entry per export, and the command line with one small entry and lazy chunks.
// Dependencies stay outside, so that users' package managers see and update them.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin, type RolldownOptions } from "rolldown";

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

const common = {
  platform: "node",
  external: (id: string) => !id.startsWith(".") && !id.startsWith("/"),
  transform: { target: "node24", define: { LAZARUS_VERSION: JSON.stringify(manifest.version) } },
} as const;

const output = {
  format: "esm",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  minify: { compress: true, mangle: false, codegen: { removeWhitespace: false } },
} as const;

/** The library, and what runs in a thread or process of its own: each loads only what it needs. */
export const library = {
  ...common,
  plugins: [lazyBuiltins(), keeperScript()],
  input: {
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
    "checkpoint-process": "src/pit/checkpoint/checkpoint-process.ts",
    "keeper-launch": "src/pit/start/keeper-launch.ts",
    "terminal-host": "src/pit/terminal/terminal-host.ts",
    "arm-crash-point": "src/testing/arm-crash-point.ts",
  },
  output: { ...output, dir: "dist", cleanDir: true },
} satisfies RolldownOptions;

/**
 * The command line. Loading a chunk costs half a millisecond, so there are few: what every command needs is one (these
 * modules and, by themselves, all their static imports), and so is what an agent calls between its steps. Code that many
 * commands share is one more: `stop` loads 14 files instead of 78 and takes about 58 ms of CPU instead of 76, and
 * a pit takes 130 to 150 ms instead of 170 to 180 until it has started. The rest comes per command.
 */
export const commandLine = {
  ...common,
  plugins: [lazyBuiltins()],
  input: { main: "src/cli/main.ts" },
  output: {
    ...output,
    dir: "dist/cli",
    codeSplitting: {
      groups: [
        {
          name: "core",
          test: /src\/(cli\/dispatch|platform\/machine|platform\/sha256|platform\/shell-word)\.ts$/,
        },
        { name: "checkpoint", test: /src\/cli\/commands\/checkpoints\/checkpoint\.ts$/ },
        { name: "hook", test: /src\/cli\/commands\/agents\/hook\.ts$/ },
        { name: "flow", test: /src\/cli\/commands\/flows\/(start|update|resume|complete|fail|block)\.ts$/ },
        { name: "shared", test: /src\//, minShareCount: 16 },
      ],
    },
  },
} satisfies RolldownOptions;

export default defineConfig([library, commandLine]);
