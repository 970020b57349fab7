// Restoring any checkpoint gives the tree that was captured. The long loop over many seeds is in test/soak.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, it } from "vitest";
import { SEED } from "../seed.ts";
import { PROFILES, runProperty } from "./property-rounds.ts";
import { otherFileSystem } from "./restore-world.ts";

describe.concurrent("restore gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES))
    it(`${name} (seed ${SEED})`, () => runProperty(SEED, profile));
});

const other = otherFileSystem();
if (other === undefined) console.log("not tested on another file system: there is none that can be used");
afterAll(() => {
  if (other !== undefined) rmSync(other, { recursive: true, force: true });
});

describe.concurrent("restore in place gives the tree that was saved", () => {
  for (const [name, profile] of Object.entries(PROFILES))
    it(`${name} (seed ${SEED})`, async () => {
      for (const parent of [tmpdir(), ...(other === undefined ? [] : [other])])
        await runProperty(SEED, profile, mkdtempSync(join(parent, "lazarus-outside-")));
    });
});
