// The files that hold properties, with new seeds and more runs: `npm run test:properties`.
import { globSync, readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

const withProperties = globSync("{src,test}/**/*.test.ts").filter((file) =>
  readFileSync(file, "utf8").includes('from "fast-check"'),
);

export default defineConfig({
  test: {
    include: withProperties,
    exclude: ["test/soak/**", "node_modules/**"],
    globalSetup: ["test/global-setup.ts"],
    setupFiles: ["test/properties.ts"],
    pool: "forks",
    testTimeout: 30 * 60_000,
    hookTimeout: 10 * 60_000,
    restoreMocks: true,
    env: { LAZARUS_PROPERTIES: "explore" },
  },
});
