// A sample of the kill matrix of durable agents in every test run: `once` tools at every crash point, generate and stream in
// turn, and `reconcile` around the effect. `npm run test:crash` runs all of it, also on PostgreSQL.
import { describe, expect, test } from "vitest";
import { enginePoints, findViolation, killAt, type MatrixCase } from "../kill-loop.ts";

const points = enginePoints();
const modes = ["generate", "stream"] as const;
const cases: MatrixCase[] = [
  ...points.map(
    (point, i): MatrixCase => ({ point, store: "sqlite", class: "once", durable: modes[i % 2]! }),
  ),
  ...["engine.effect.happened", "engine.effect.started", "engine.effect.reconciled"].map(
    (point, i): MatrixCase => ({ point, store: "sqlite", class: "reconcile", durable: modes[(i + 1) % 2]! }),
  ),
];

describe("a durable agent killed with SIGKILL", () => {
  test.concurrent.each(cases)(
    "at $point with a $class tool in $durable keeps its guarantee",
    async (matrixCase) => {
      const result = await killAt(matrixCase, undefined);
      expect(findViolation(result)).toBeUndefined();
      const { point } = matrixCase;
      if (matrixCase.class !== "once") return;
      if (point === "engine.effect.happened") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [1], after: [1, 1] });
      }
      if (point === "engine.effect.started") {
        expect(result).toMatchObject({ parked: true, kills: 1, before: [], after: [1, 1] });
      }
    },
  );
});
