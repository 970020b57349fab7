// Seeded randomness (INV-9), so that a failure that prints its seed can be replayed. For tests only: predictable by
// design.
import type { IdSource } from "../platform/ids.ts";

/** A seeded source of random numbers. */
export interface Random {
  readonly seed: number;
  /** An integer from `min` to `max`, inclusive. */
  int(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  /** True with probability `p`. */
  chance(p: number): boolean;
  bytes(n: number): Uint8Array;
}

/** mulberry32: 32 bits of state, passes gjrand's small-state tests, and is short enough to read. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/** Creates a random source from a seed. */
export function createRandom(seed: number): Random {
  const next = mulberry32(seed);
  const int = (min: number, max: number) => {
    if (!(max >= min)) throw new RangeError(`no integer from ${min} to ${max}`);
    return min + Math.floor((next() / 2 ** 32) * (max - min + 1));
  };
  return {
    seed,
    int,
    pick(items) {
      if (items.length === 0) throw new RangeError("nothing to pick from");
      return items[int(0, items.length - 1)] as (typeof items)[number];
    },
    chance: (p) => next() / 2 ** 32 < p,
    bytes: (n) => Uint8Array.from({ length: n }, () => next() >>> 24),
  };
}

/** Creates a source of ids from a seed. */
export function createSeededIds(seed: number): IdSource {
  const random = createRandom(seed);
  return { bytes: (n) => random.bytes(n) };
}
