import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: ["test/soak/**", "node_modules/**"],
    globalSetup: ["test/global-setup.ts"],
    setupFiles: ["test/properties.ts"],
    pool: "forks",
    // Vitest would leave one core idle; tests of agents and of the command line mostly wait for processes and disks.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    restoreMocks: true,
  },
});
