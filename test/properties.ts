// `npm test` gives the same result for the same commit, so it uses a fixed seed. `npm run test:properties` uses new seeds
// and more runs, to find new counterexamples.
import fc from "fast-check";

const SEED = 20_261_115;
const EXPLORED_RUNS = 2000;

fc.configureGlobal(
  process.env.LAZARUS_PROPERTIES === "explore" ? { numRuns: EXPLORED_RUNS } : { seed: SEED },
);
