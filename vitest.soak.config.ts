// Long runs that look for rare faults: `npm run test:soak`. Not part of `npm test`.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/soak/**/*.test.ts"],
    globalSetup: ["test/global-setup.ts"],
    pool: "forks",
    testTimeout: 60 * 60_000,
    hookTimeout: 10 * 60_000,
  },
});
