import { describe, expect, it } from "vitest";
import { CHAIN_LIMITS, LIVE_CHAIN_LIMITS, planCompaction } from "./compact.ts";

interface Simulation {
  /** Bytes of all changes, and bytes that merging wrote in addition. */
  readonly changed: number;
  readonly rewritten: number;
  readonly mostLayers: number;
}

/** Merged layers keep all their bytes: the worst case, in which no change replaces an earlier one. */
function simulate(base: number, changes: readonly number[], limits = CHAIN_LIMITS): Simulation {
  let sizes = [base];
  let changed = 0;
  let rewritten = 0;
  let mostLayers = 1;
  for (const change of changes) {
    sizes.push(change);
    changed += change;
    const from = planCompaction(sizes, limits);
    if (from !== undefined) {
      const merged = sizes.slice(from).reduce((sum, size) => sum + size, 0);
      rewritten += merged;
      sizes = [...sizes.slice(0, from), merged];
    }
    mostLayers = Math.max(mostLayers, sizes.length);
  }
  return { changed, rewritten, mostLayers };
}

describe("planCompaction", () => {
  it("leaves short chains alone", () => {
    for (let layers = 1; layers < 8; layers += 1)
      expect(planCompaction(new Array(layers).fill(10))).toBe(undefined);
    expect(planCompaction([1_000_000, ...new Array(30).fill(1)])).toBe(undefined);
  });

  it("starts a new base when the deltas outgrow half of it", () => {
    expect(planCompaction([100, ...new Array(8).fill(7)])).toBe(0);
    expect(planCompaction([100, ...new Array(8).fill(6)])).toBe(undefined);
  });

  it.each([
    ["equal changes", (_: number) => 10],
    ["changes of all sizes", (i: number) => 1 + ((i * 7919) % 997)],
    ["a large change now and then", (i: number) => (i % 50 === 0 ? 5000 : 10)],
    ["large and small in turns", (i: number) => (i % 7 === 0 ? 3000 : 10)],
  ])(
    "rewrites at most twice the changed bytes over 1,000 checkpoints of %s, and keeps the chain short",
    (_, size) => {
      const changes = Array.from({ length: 1000 }, (_, i) => size(i));
      const { changed, rewritten, mostLayers } = simulate(1e9, changes);
      expect(rewritten / changed).toBeLessThanOrEqual(2);
      expect(mostLayers).toBeLessThan(CHAIN_LIMITS.maxLayers);
    },
  );

  it("rewrites little over 1,000 live points, and starts a new base later", () => {
    const { changed, rewritten, mostLayers } = simulate(1e9, new Array(1000).fill(10), LIVE_CHAIN_LIMITS);
    expect(rewritten / changed).toBeLessThanOrEqual(1.1);
    expect(mostLayers).toBeLessThan(LIVE_CHAIN_LIMITS.maxLayers);
    const [base, delta] = [100 << 20, 20 << 20];
    expect(planCompaction([base, ...new Array(10).fill(delta)], LIVE_CHAIN_LIMITS)).toBe(undefined);
    expect(planCompaction([base, ...new Array(11).fill(delta)], LIVE_CHAIN_LIMITS)).toBe(0);
  });

  it("starts no new base for live points of a small cell, and still keeps the chain short", () => {
    const { changed, rewritten, mostLayers } = simulate(1000, new Array(1000).fill(10), LIVE_CHAIN_LIMITS);
    expect(rewritten / changed).toBeLessThanOrEqual(1.1);
    expect(mostLayers).toBeLessThan(LIVE_CHAIN_LIMITS.maxLayers);
    const { minDeltaBytes } = LIVE_CHAIN_LIMITS;
    expect(planCompaction([1000, ...new Array(8).fill(minDeltaBytes / 8)], LIVE_CHAIN_LIMITS)).toBe(
      undefined,
    );
    expect(planCompaction([1000, ...new Array(8).fill(minDeltaBytes / 8 + 1)], LIVE_CHAIN_LIMITS)).toBe(0);
  });

  it("stays within base + 2 × changes over the first 100 small checkpoints", () => {
    const { changed, rewritten } = simulate(1e9, new Array(100).fill(10));
    expect(changed + rewritten).toBeLessThanOrEqual(2 * changed);
  });

  it("keeps the chain short for any sizes", () => {
    for (const base of [0, 1, 1000, 1e6]) {
      for (const changes of [
        new Array(300).fill(0),
        Array.from({ length: 300 }, (_, i) => 2 ** (i % 20)),
        Array.from({ length: 300 }, (_, i) => 1e6 / (i + 1)),
      ])
        expect(simulate(base, changes).mostLayers).toBeLessThan(CHAIN_LIMITS.maxLayers);
    }
  });
});
