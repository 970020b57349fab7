// Real agent CLIs, installed from npm: `npm run test:agents`. Not part of `npm test`.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/agents/real/**/*.test.ts"],
    globalSetup: ["test/global-setup.ts"],
    pool: "forks",
    testTimeout: 60 * 60_000,
    hookTimeout: 10 * 60_000,
    experimental: { viteModuleRunner: false },
  },
});
