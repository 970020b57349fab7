// 500 random kills of one cell's checkpoints, one after the other, with merging and pruning.
import { expect, it } from "vitest";
import { createRandom } from "../../src/testing/index.ts";
import { checkVault, runVictim } from "../crash/checkpoint-kill.ts";
import { CRASH_DOCUMENT } from "../crash/checkpoint-settings.ts";
import { createLab } from "../snapshot/lab.ts";

const KILLS = Number(process.env.LAZARUS_KILLS ?? 500);
const SEED = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);

it(`${KILLS} random kills lose nothing (seed ${SEED})`, { timeout: 3_600_000 }, async () => {
  const random = createRandom(SEED);
  using lab = createLab({ document: CRASH_DOCUMENT });
  let saved = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const before = lab.context.vault.list().map(({ id }) => id);
    const killAfterMs = random.int(0, random.pick([20, 100, 600]));
    const ending = await runVictim({ home: lab.home, rounds: 1000, first: kill * 1000, killAfterMs });
    expect(ending.signal, `kill ${kill}`).toBe("SIGKILL");
    await checkVault(lab, before, ending);
    saved += ending.saved.length;
  }
  process.stderr.write(`${saved} checkpoints were acknowledged between ${KILLS} kills\n`);
});
