// Fifteen rounds of the race harness, and as many with a worktree in place; the soak test does 500. `LAZARUS_SEED=<n>` replays
// a failure.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { SEED } from "../seed.ts";
import { liveRace, plannedRace, plannedRestore } from "./race-rounds.ts";
import { otherFileSystem } from "./restore-world.ts";

const PLANNED = 8;
const FROM_SETS = 4;
const RESTORES = 3;
const LIVE = 1;

const other = otherFileSystem();
if (other === undefined) console.log("not tested on another file system: there is none that can be used");
afterAll(() => {
  if (other !== undefined) rmSync(other, { recursive: true, force: true });
});

/** Every other round on another file system, if there is one. */
const outside = (seed: number) =>
  mkdtempSync(join(seed % 2 === 0 ? tmpdir() : (other ?? tmpdir()), "lazarus-race-"));

for (const [name, place] of [
  ["a worktree in the cell", () => undefined],
  ["a worktree in place", outside],
] as const) {
  describe(name, () => {
    it(`checkpoints during ${PLANNED} planned races`, async () => {
      for (let seed = SEED; seed < SEED + PLANNED; seed += 1)
        await plannedRace(seed, 2, { place: place(seed) });
    });

    it(`checkpoints from a dirty set during ${FROM_SETS} planned races`, async () => {
      for (let seed = SEED; seed < SEED + FROM_SETS; seed += 1)
        await plannedRace(seed, 3, { place: place(seed), isDirty: true });
    });

    it(`restores during ${RESTORES} planned races`, async () => {
      for (let seed = SEED; seed < SEED + RESTORES; seed += 1) await plannedRestore(seed, place(seed));
    });

    it(`checkpoints during ${LIVE} live races`, async () => {
      for (let seed = SEED; seed < SEED + LIVE; seed += 1) await liveRace(seed, 3, place(seed));
    });
  });
}
