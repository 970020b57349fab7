// Four random kills of everything; test/soak has 200.
import { expect, it } from "vitest";
import { SEED } from "../seed.ts";
import { expectBounded, killRound } from "./loss-rounds.ts";

it("work that was finished longer ago than the limit survives SIGKILL of pit, keeper and agent", async () => {
  for (let seed = SEED; seed < SEED + 4; seed += 1) {
    const loss = await killRound(seed);
    expectBounded(loss, seed);
    expect(loss.lostMs).toBeGreaterThanOrEqual(0);
  }
});
