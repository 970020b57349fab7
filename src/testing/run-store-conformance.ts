// The conformance suite of run stores: memory, SQLite, PostgreSQL, and custom ones. It checks the contract in
// src/run/store/store.ts. Pass `describe` and `test` of your test runner.
import { createBench, type Declare, type RunStorePlace } from "./run-store-bench.ts";
import { declareForks } from "./run-store-forks.ts";
import { declareOwners } from "./run-store-owners.ts";
import { declareRecords } from "./run-store-records.ts";

export type { RunStorePlace } from "./run-store-bench.ts";

/** The two functions of a test runner that the suite needs. */
export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
}

/** Declares the suite for one kind of store; `createPlace` creates an empty location for each test. */
export function runStoreConformance(
  runner: SuiteRunner,
  name: string,
  createPlace: () => Promise<RunStorePlace>,
): void {
  const declare: Declare = {
    describe: runner.describe,
    test: (title, body) =>
      runner.test(title, async () => {
        const bench = await createBench(createPlace);
        try {
          await body(bench);
        } finally {
          await bench.dispose();
        }
      }),
  };
  runner.describe(`${name} run store`, () => {
    declareRecords(declare);
    declareOwners(declare);
    declareForks(declare);
  });
}
