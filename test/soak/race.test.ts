// 500 rounds of the race harness of test/snapshot/race.test.ts, every other one with a worktree in place. A failure names its
// seed: `LAZARUS_SEED=<n>` replays it.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "vitest";
import { liveRace, plannedRace, plannedRestore } from "../snapshot/race-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 500);

it(`${ROUNDS} races from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  for (let seed = FIRST; seed < FIRST + ROUNDS; seed += 1) {
    const place = seed % 2 === 0 ? undefined : mkdtempSync(join(tmpdir(), "lazarus-race-"));
    if (seed % 10 < 6) await plannedRace(seed, 3, { place, isDirty: seed % 2 === 0 });
    else if (seed % 10 < 9) await plannedRestore(seed, place);
    else await liveRace(seed, 4, place);
  }
});
