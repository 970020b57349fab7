// What the suite's own random walks begin with: always the same, so that `npm test` says the same of the same commit.
// `LAZARUS_SEED=7 npx vitest run …` takes another; the soaks (npm run test:soak) take a new one each time.
export const SEED = Number(process.env.LAZARUS_SEED ?? 20_261_115);
