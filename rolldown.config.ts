// The build: one small entry for the CLI with a lazy chunk per command, and one entry per library export.
// Dependencies stay outside, so that users' package managers see and update them.
import { readFileSync } from "node:fs";
import { defineConfig } from "rolldown";

const manifest = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));

export default defineConfig({
  input: {
    "cli/main": "src/cli/main.ts",
    index: "src/index.ts",
    testing: "src/testing/index.ts",
    "arm-crash-point": "src/testing/arm-crash-point.ts",
  },
  platform: "node",
  external: (id) => !id.startsWith(".") && !id.startsWith("/"),
  transform: { target: "node24", define: { LAZARUS_VERSION: JSON.stringify(manifest.version) } },
  output: {
    dir: "dist",
    format: "esm",
    cleanDir: true,
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    // Loading a chunk costs half a millisecond: what every command needs is one chunk, the rest comes per command.
    advancedChunks: {
      groups: [
        {
          name: "core",
          test: /src\/(cli\/(run-line|context|parse|suggest|catalogue|terminal|version|command)|cli\/render\/paint|cell\/(config|mission-id|layout|heartbeat)|platform\/(clock|crash-point|disk|durable|errors|ids|json-file|machine|process-identity))\.ts$/,
        },
        { name: "heartbeat", test: /commands\/heartbeat/ },
      ],
    },
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
  },
});
