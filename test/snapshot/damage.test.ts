// A flipped bit or a truncation at random offsets of a vault: verify --deep finds all damage that matters, and a restore
// either refuses before it touches the cell or restores exactly what was captured. The soak test does a thousand rounds.
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { damageRound, makePristine, type Pristine, withCopy } from "./damage-rounds.ts";

const ROUNDS = 100;
let pristine: Pristine;

beforeAll(async () => {
  pristine = await makePristine();
});
afterAll(() => pristine[Symbol.dispose]());

it(`finds damage at each of ${ROUNDS} random offsets and never restores damaged data`, async () => {
  const hit = new Set<string>();
  for (let seed = 1; seed <= ROUNDS; seed += 1) {
    const { file } = await damageRound(pristine, seed);
    hit.add(file.slice(file.lastIndexOf("/") + 1));
  }
  expect(hit).toContain("index.json");
  expect(hit.size).toBeGreaterThan(5);
});

/** Flips a bit in the table of contents of the newest checkpoint's top layer, then takes another checkpoint. */
async function checkpointOnDamagedTable(): Promise<{ good: readonly string[]; made: string }> {
  return await withCopy(pristine, async (context) => {
    const top = readCheckpoint(context.vault, context.vault.list().at(-1)!).layers.at(-1)!;
    const file = context.vault.blobPath(top.digest);
    const bytes = readFileSync(file);
    bytes[bytes.length - 120]! ^= 1;
    writeFileSync(file, bytes);
    const { ref } = await takeCheckpoint(context, { reason: "manual" });
    return { good: (await verifyVault(context.vault)).good, made: ref.id };
  });
}

it("does not build a checkpoint on a layer with a damaged table, even when the stat store is intact", async () => {
  const { good, made } = await checkpointOnDamagedTable();
  expect(good).toContain(made);
});
