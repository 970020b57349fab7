// Twenty rounds of the race harness; the soak test does 500. `LAZARUS_SEED=<n>` replays a failure.
import { it } from "vitest";
import { SEED } from "../seed.ts";
import { liveRace, plannedRace, plannedRestore } from "./race-rounds.ts";

const PLANNED = 13;
const RESTORES = 5;
const LIVE = 2;

it(`checkpoints during ${PLANNED} planned races`, async () => {
  for (let seed = SEED; seed < SEED + PLANNED; seed += 1) await plannedRace(seed, 2);
});

it(`restores during ${RESTORES} planned races`, async () => {
  for (let seed = SEED; seed < SEED + RESTORES; seed += 1) await plannedRestore(seed);
});

it(`checkpoints during ${LIVE} live races`, async () => {
  for (let seed = SEED; seed < SEED + LIVE; seed += 1) await liveRace(seed, 3);
});
