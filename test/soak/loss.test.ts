// 200 random kills of pit, keeper and agent (INV-10). A failure names its seed: `LAZARUS_SEED=<n>` replays its plan.
import { expect, it } from "vitest";
import { killRound, type Loss } from "../pit/loss-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 200);

it(`${ROUNDS} kills from seed ${FIRST}`, { timeout: 7_200_000 }, async () => {
  const losses: Loss[] = [];
  for (let seed = FIRST; seed < FIRST + ROUNDS; seed += 1) {
    const loss = await killRound(seed);
    expect(loss.lostMs, `seed ${seed}`).toBeLessThanOrEqual(loss.limitMs);
    losses.push(loss);
  }
  const sorted = losses.map(({ lostMs }) => lostMs).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  process.stdout.write(
    `work lost in ${ROUNDS} kills, limit 1000 ms: median ${median} ms, most ${sorted.at(-1)} ms\n`,
  );
});
