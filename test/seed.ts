// The seed of the suite's own random tests: fixed, so that `npm test` gives the same result for the same commit.
// `LAZARUS_SEED=7 npx vitest run …` uses another; the soak tests (npm run test:soak) use a new one each time.
export const SEED = Number(process.env.LAZARUS_SEED ?? 20_261_115);
