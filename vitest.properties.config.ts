// The files that hold properties, with new seeds and more runs: `npm run test:properties`.
import { globSync, readFileSync } from "node:fs";
import { defineConfig, mergeConfig } from "vitest/config";
import base from "./vitest.config.ts";

const withProperties = globSync("{src,test}/**/*.test.ts").filter((file) =>
  readFileSync(file, "utf8").includes('from "fast-check"'),
);

export default mergeConfig(
  { ...base, test: { ...base.test, include: [] } },
  defineConfig({
    test: { include: withProperties, testTimeout: 30 * 60_000, env: { LAZARUS_PROPERTIES: "explore" } },
  }),
);
