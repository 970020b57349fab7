// The property of test/snapshot/property.test.ts over many seeds, every other one with a worktree in place.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { PROFILES, runProperty } from "../snapshot/property-rounds.ts";

const FIRST = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);
const SEEDS = Number(process.env.LAZARUS_SEEDS ?? 60);

describe.concurrent("restore gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES)) {
    it(`${name}, over ${SEEDS} seeds from ${FIRST}`, { timeout: 7_200_000 }, async () => {
      for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
        const outside = seed % 2 === 0 ? undefined : mkdtempSync(join(tmpdir(), "lazarus-outside-"));
        await runProperty(seed, profile, outside);
      }
    });
  }
});
