// INV-1 and INV-2 on a real process: SIGKILL at every crash point of a checkpoint, and at random moments. The long loop
// is in test/soak.
import { describe, expect, it } from "vitest";
import { createRandom, listCrashPoints } from "../../src/testing/index.ts";
import { SEED } from "../seed.ts";
import { createLab } from "../snapshot/lab.ts";
import { checkVault, runVictim, SOURCES } from "./checkpoint-kill.ts";
import { CRASH_DOCUMENT } from "./checkpoint-settings.ts";

const points = listCrashPoints(SOURCES)
  .map(({ name }) => name)
  .filter((name) => /^snapshot\.(capture|layer|publish|compact|stat-store)\./.test(name));
/** Enough for compaction and pruning to take place. */
const ROUNDS = 12;
const RANDOM_KILLS = 5;

describe.concurrent("a checkpoint killed with SIGKILL", () => {
  for (const point of points) {
    // The stat store is only replaced by the first checkpoint.
    const isRare = point.startsWith("snapshot.compact.") || point === "snapshot.stat-store.removed";
    const passes = isRare ? [1] : [1, 9];
    for (const pass of passes) {
      it(`at ${point}, pass ${pass}, exists completely or not at all`, async () => {
        using lab = createLab({ document: CRASH_DOCUMENT });
        const ending = await runVictim({ home: lab.home, rounds: ROUNDS, crashAt: `${point}#${pass}` });
        expect(ending.signal, `${point} is never reached: make checkpoint-victim.ts reach it`).toBe(
          "SIGKILL",
        );
        await checkVault(lab, [], ending);
      });
    }
  }
});

it(`${RANDOM_KILLS} random kills of one cell's checkpoints lose nothing (seed ${SEED})`, async () => {
  const random = createRandom(SEED);
  using lab = createLab({ document: CRASH_DOCUMENT });
  for (let kill = 0; kill < RANDOM_KILLS; kill += 1) {
    const before = lab.context.vault.list().map(({ id }) => id);
    const ending = await runVictim({
      home: lab.home,
      rounds: 1000,
      first: kill * 1000,
      killAfterMs: random.int(0, 250),
    });
    expect(ending.signal).toBe("SIGKILL");
    await checkVault(lab, before, ending);
  }
});

it("finds crash points", () => {
  expect(points.length).toBeGreaterThanOrEqual(9);
});
