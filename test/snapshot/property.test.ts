// Restoring any checkpoint gives the tree it was taken of, whatever the tree and whatever happened in between. The long
// loop over many seeds is in test/soak.
import { describe, it } from "vitest";
import { OLD_MS } from "./lab.ts";
import { type Profile, runProperty } from "./property-rounds.ts";

const SEED = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);

export const PROFILES: Readonly<Record<string, Profile>> = {
  "when only stat tells what changed": { size: 60, rounds: 4, editsPerRound: 25, lab: { aheadMs: OLD_MS } },
  "when every file is too young to trust its stat": {
    size: 40,
    rounds: 4,
    editsPerRound: 15,
    lab: { aheadMs: 0, document: { snapshot: { compression: "zstd" } } },
  },
  "through many layers, with secrets": {
    size: 15,
    rounds: 13,
    editsPerRound: 3,
    garden: { secrets: true, most: 5000 },
  },
  "when the stat cache is lost, torn or stale": { size: 30, rounds: 6, editsPerRound: 8, hurtCache: true },
  "with large files and workers": { size: 40, rounds: 3, editsPerRound: 15, garden: { most: 7 << 20 } },
  "with repositories in it": { size: 25, rounds: 4, editsPerRound: 10, git: true },
};

describe.concurrent("restore gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES))
    it(`${name} (seed ${SEED})`, { timeout: 120_000 }, () => runProperty(SEED, profile));
});
