// `npm test` says the same of the same commit, so properties draw from one seed there. `npm run test:properties` draws
// anew each time and draws more: that is where new counterexamples come from.
import fc from "fast-check";

const SEED = 20_261_115;
const EXPLORED_RUNS = 2000;

fc.configureGlobal(
  process.env.LAZARUS_PROPERTIES === "explore" ? { numRuns: EXPLORED_RUNS } : { seed: SEED },
);
