// Pages in a real browser, installed from npm: `npm run test:browser`. Not part of `npm test`.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    globalSetup: ["test/global-setup.ts"],
    pool: "forks",
    testTimeout: 10 * 60_000,
    hookTimeout: 10 * 60_000,
    experimental: { viteModuleRunner: false },
  },
});
