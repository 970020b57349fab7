// Damage at a thousand random places of a vault; the normal suite does a hundred. Seeds are fixed, so failures repeat.
import { afterAll, beforeAll, it } from "vitest";
import { damageRound, makePristine, type Pristine } from "../snapshot/damage-rounds.ts";

const FIRST = 101;
const LAST = 1100;
let pristine: Pristine;

beforeAll(async () => {
  pristine = await makePristine();
});
afterAll(() => pristine[Symbol.dispose]());

it(`finds damage at each of ${LAST - FIRST + 1} random places, and never restores damaged data`, {
  timeout: 600_000,
}, async () => {
  for (let seed = FIRST; seed <= LAST; seed += 1) await damageRound(pristine, seed);
});
