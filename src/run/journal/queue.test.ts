import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Candidate, chooseQueued, type Running, takeFrom } from "./queue.ts";

const candidate = (id: string, change: Partial<Candidate> = {}): Candidate => ({
  ...{ id, caller: null, model: null, priority: 0, position: Number(id.slice(1)) },
  ...change,
});
const running = (change: Partial<Running> = {}): Running => ({
  ...{ caller: null, model: null, isMine: false },
  ...change,
});

describe("chooseQueued", () => {
  test("takes the oldest first, and higher priorities before it", () => {
    const candidates = [candidate("r2"), candidate("r1"), candidate("r3", { priority: 5 })];
    expect(chooseQueued(candidates, [], {}, 9)).toEqual(["r3", "r1", "r2"]);
    expect(chooseQueued(candidates, [], {}, 1)).toEqual(["r3"]);
  });

  test("is fair: the caller with the fewest runs is next", () => {
    const mine = ["r1", "r2", "r3"].map((id) => candidate(id, { caller: "a" }));
    const theirs = candidate("r9", { caller: "b" });
    expect(chooseQueued([...mine, theirs], [], {}, 9)).toEqual(["r1", "r9", "r2", "r3"]);
    expect(chooseQueued([...mine, theirs], [running({ caller: "a" })], {}, 1)).toEqual(["r9"]);
  });

  test("respects every limit", () => {
    const candidates = [
      candidate("r1", { caller: "a", model: "m" }),
      candidate("r2", { caller: "a", model: "n" }),
      candidate("r3", { caller: "b", model: "m" }),
    ];
    expect(chooseQueued(candidates, [running()], { total: 2 }, 9)).toHaveLength(1);
    expect(chooseQueued(candidates, [running()], { perWorker: 2 }, 9)).toHaveLength(2);
    expect(chooseQueued(candidates, [running({ isMine: true })], { perWorker: 1 }, 9)).toEqual([]);
    expect(chooseQueued(candidates, [], { perCaller: 1 }, 9)).toEqual(["r1", "r3"]);
    expect(chooseQueued(candidates, [running({ model: "m" })], { perModel: 1 }, 9)).toEqual(["r2"]);
  });

  test("never exceeds a limit, for any queue", () => {
    const names = fc.constantFrom(null, "a", "b");
    const candidates = fc.array(
      fc.record({ caller: names, model: names, priority: fc.integer({ max: 2, min: 0 }) }),
    );
    const runs = fc.array(fc.record({ caller: names, model: names, isMine: fc.boolean() }), { maxLength: 8 });
    const limit = fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined });
    const limits = fc.record({ total: limit, perWorker: limit, perCaller: limit, perModel: limit });
    fc.assert(
      fc.property(candidates, runs, limits, (made, already, given) => {
        const all = made.map((each, i) => candidate(`r${i}`, each));
        const chosen = chooseQueued(all, already, given, 99);
        const started = chosen.map((id) => all.find((each) => each.id === id)!);
        expect(new Set(chosen).size).toBe(chosen.length);
        const check = (count: number, added: number, max: number | undefined) => {
          if (added > 0 && max !== undefined) expect(count + added).toBeLessThanOrEqual(max);
        };
        check(already.length, chosen.length, given.total);
        check(already.filter(({ isMine }) => isMine).length, chosen.length, given.perWorker);
        for (const name of [null, "a", "b"]) {
          const of = (list: readonly { caller: string | null }[]) =>
            list.filter(({ caller }) => caller === name);
          check(of(already).length, of(started).length, given.perCaller);
          if (name === null) continue;
          const on = (list: readonly { model: string | null }[]) =>
            list.filter(({ model }) => model === name);
          check(on(already).length, on(started).length, given.perModel);
        }
      }),
    );
  });
});

describe("takeFrom", () => {
  const limit = { amount: 10, perMs: 1000 };

  test("refills at a constant rate up to its size", () => {
    const first = takeFrom(undefined, limit, 10, 0);
    expect(first).toEqual({ bucket: { left: 0, atMs: 0 }, waitMs: 0 });
    expect(takeFrom(first.bucket, limit, 1, 0).waitMs).toBe(100);
    expect(takeFrom(first.bucket, limit, 1, 100)).toEqual({ bucket: { left: 0, atMs: 100 }, waitMs: 0 });
    expect(takeFrom(first.bucket, limit, 1, 1e9).bucket.left).toBe(9);
  });

  test("a call larger than the bucket waits for a full one and leaves it negative", () => {
    const full = takeFrom(undefined, limit, 25, 0);
    expect(full).toEqual({ bucket: { left: -15, atMs: 0 }, waitMs: 0 });
    expect(takeFrom(full.bucket, limit, 1, 0).waitMs).toBe(1600);
  });

  test("a clock that was set back refills nothing", () => {
    expect(takeFrom({ left: 0, atMs: 5000 }, limit, 1, 0).waitMs).toBe(100);
  });
});
