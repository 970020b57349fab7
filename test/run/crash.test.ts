// The part of the kill matrix that every test run repeats: SQLite, the class with the most to lose, every crash point;
// the other classes at the points around the effect. `npm run test:crash` does all of it, on PostgreSQL too.
import { describe, expect, test } from "vitest";
import { brokenPromise, type Class, crashPointsFor, killAt } from "./kill-loop.ts";

const AROUND_THE_EFFECT = ["run.effect.started", "run.effect.happened", "run.effect.reconciled"];
const cells: [string, Class][] = [
  ...crashPointsFor("sqlite").map((point): [string, Class] => [point, "once"]),
  ...AROUND_THE_EFFECT.map((point): [string, Class] => [point, "reconcile"]),
];

describe("killed with SIGKILL", () => {
  test.concurrent.each(cells)(
    "at %s with a %s tool, the run ends and its promise holds",
    async (point, each) => {
      const result = await killAt({ point, store: "sqlite", class: each }, undefined);
      expect(brokenPromise(result)).toBeUndefined();
      if (point === "run.effect.happened" && each === "once") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [1], after: [1, 1] });
      }
      if (point === "run.effect.started" && each === "once") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [], after: [1, 1] });
      }
    },
  );
});
