import { describe, expect, it } from "vitest";
import { planSilence } from "./silence.ts";

const DAY = 24 * 3600;
const NOW = 1_800_000_000;
const plan = (silent: Record<string, number>, known: Record<string, number> = {}) =>
  planSilence(new Map(Object.entries(silent)), new Map(Object.entries(known)), NOW, DAY);

describe("a silent cell", () => {
  it("is reported once for each silence", () => {
    expect(plan({ gateway: NOW - 200 }).fresh).toEqual(["gateway"]);
    expect(plan({ gateway: NOW - 200 }, { gateway: NOW - 200 }).fresh).toEqual([]);
    expect(plan({ gateway: NOW - 200 }, { gateway: NOW - 9000 }).fresh).toEqual(["gateway"]);
  });

  it("is forgotten when it sends heartbeats again", () => {
    expect([...plan({}, { gateway: NOW - 200 }).known]).toEqual([]);
  });

  it("is not reported, only remembered, when it has been silent for longer than the maximum age", () => {
    const { fresh, known } = plan({ old: NOW - DAY - 1 });
    expect(fresh).toEqual([]);
    expect([...known.keys()]).toEqual(["old"]);
  });
});
