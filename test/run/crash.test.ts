// The part of the kill matrix in every test run: SQLite with `once` tools at every crash point, and the other classes at
// the points around the effect. `npm run test:crash` runs all of it, also on PostgreSQL.
import { describe, expect, test } from "vitest";
import { type Class, enginePoints, findViolation, killAt, killAtPasses } from "./kill-loop.ts";

const AROUND_THE_EFFECT = ["engine.effect.started", "engine.effect.happened", "engine.effect.reconciled"];
const cases: [string, Class][] = [
  ...enginePoints().map((point): [string, Class] => [point, "once"]),
  ...AROUND_THE_EFFECT.map((point): [string, Class] => [point, "reconcile"]),
];

describe("killed with SIGKILL", () => {
  test.concurrent.each(cases)(
    "at %s with a %s tool, the run ends and its effects happen as often as allowed",
    async (point, each) => {
      const result = await killAt({ point, store: "sqlite", class: each }, undefined);
      expect(findViolation(result)).toBeUndefined();
      if (point === "engine.resolve.settled") {
        expect(result).toMatchObject({ parked: true, kills: 2, before: [1], after: [1, 1] });
      }
      if (point === "engine.effect.happened" && each === "once") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [1], after: [1, 1] });
      }
      if (point === "engine.effect.started" && each === "once") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [], after: [1, 1] });
      }
    },
  );
});

describe("killed with SIGKILL at any pass of a point around an effect", () => {
  const modes = [
    ["an executor", undefined],
    ["a durable agent, generate", "generate"],
    ["a durable agent, stream", "stream"],
  ] as const;
  test.concurrent.each(modes)("a step and a child run of nested tools act once: %s", async (_, durable) => {
    for (const point of ["engine.effect.started", "engine.effect.happened"]) {
      const results = await killAtPasses({ point, store: "sqlite", class: "nested", durable }, undefined);
      expect(results.map(findViolation)).toEqual(results.map(() => undefined));
      // Two calls of the parent, and one of the child, whose outcome is unknown.
      expect(results.map(({ kills }) => kills)).toEqual([1, 1, 1]);
      expect(results.filter(({ parked }) => parked).length).toBe(1);
    }
  });
});

describe("killed with SIGKILL, and its store restored to before the run", () => {
  // What follows a point is the same up to the next write: these are the points around each write of an effect.
  const points = enginePoints().filter((name) => /^engine\.(effect|save)\./.test(name));
  test.concurrent.each(points)("at %s, no once tool is called twice", async (point) => {
    const result = await killAt({ point, store: "sqlite", class: "once", rollBack: true }, undefined);
    expect(findViolation(result)).toBeUndefined();
    if (point === "engine.effect.happened")
      expect(result).toMatchObject({ parked: true, before: [1], after: [1, 1] });
    if (point === "engine.effect.recorded") expect(result).toMatchObject({ parked: false, after: [1, 1] });
  });
});
