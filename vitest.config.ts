import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { SkippedReporter } from "./test/skipped-reporter.ts";
import { smallWorkers } from "./test/small-workers.ts";

export default defineConfig({
  test: {
    projects: [
      { extends: true, test: { name: "units", include: ["src/**/*.test.ts"] } },
      {
        extends: true,
        test: {
          name: "whole",
          include: ["test/**/*.test.ts"],
          pool: smallWorkers,
          execArgv: ["--max-semi-space-size=2"],
        },
      },
    ],
    // Test files share worker processes, which saves a tenth of the CPU time: none of them changes global state.
    isolate: false,
    exclude: ["test/soak/**", "test/agents/real/**", "test/browser/**", "node_modules/**"],
    globalSetup: ["test/global-setup.ts"],
    setupFiles: ["test/properties.ts"],
    reporters: ["default", new SkippedReporter()],
    pool: "forks",
    // Tests of agents and of the command line mostly wait for processes and disks.
    maxWorkers: availableParallelism() + 2,
    // Ends what hangs, and nothing else: a test that takes 20 s alone has taken two minutes on a crowded machine.
    testTimeout: 10 * 60_000,
    hookTimeout: 10 * 60_000,
    restoreMocks: true,
    // Sources are erasable TypeScript, which Node runs as it is: 12.8 → 4.7 s for 601 unit tests.
    experimental: { viteModuleRunner: false },
  },
});
