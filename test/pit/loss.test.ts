// Four random kills of everything; test/soak has 200.
import { expect, it } from "vitest";
import { SEED } from "../seed.ts";
import { killRound } from "./loss-rounds.ts";

it("work that was finished longer ago than the limit survives SIGKILL of pit, keeper and agent", async () => {
  for (let seed = SEED; seed < SEED + 4; seed += 1) {
    const { lostMs, limitMs } = await killRound(seed);
    expect(lostMs, `seed ${seed}`).toBeLessThanOrEqual(limitMs);
    expect(lostMs).toBeGreaterThanOrEqual(0);
  }
});
