// Restoring any checkpoint gives the tree it was taken of, whatever the tree and whatever happened in between. The long
// loop over many seeds is in test/soak.
import { describe, it } from "vitest";
import { PROFILES, runProperty } from "./property-rounds.ts";

const SEED = Number(process.env.LAZARUS_SEED ?? Date.now() % 1_000_000);

describe.concurrent("restore gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES))
    it(`${name} (seed ${SEED})`, { timeout: 120_000 }, () => runProperty(SEED, profile));
});
