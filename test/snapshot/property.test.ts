// Restoring any checkpoint gives the tree that was captured. The long loop over many seeds is in test/soak.
import { describe, it } from "vitest";
import { SEED } from "../seed.ts";
import { PROFILES, runProperty } from "./property-rounds.ts";

describe.concurrent("restore gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES))
    it(`${name} (seed ${SEED})`, () => runProperty(SEED, profile));
});
