// The status of a cell, decided on plain data (docs/cells.md, "Scan").
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CellObservation, classifyCell } from "./classify.ts";

const NOW = 1_800_000_000;
const LIMIT = 180;
const withHeartbeat = (age: number, missing: string[] = []): CellObservation => ({
  missing,
  heartbeat: { timestamp: NOW - age },
});
const classify = (observation: CellObservation) => classifyCell(observation, NOW, LIMIT);

describe("a cell is", () => {
  it("incomplete if any required sub-directory is missing, and says which", () => {
    expect(classify(withHeartbeat(0, ["logs", "artifacts"]))).toMatchObject({
      status: "incomplete",
      reason: "missing logs, artifacts",
      ageSeconds: 0,
    });
  });

  it("incomplete, even if another state applies too", () => {
    expect(classify({ missing: ["state"], heartbeat: { absent: "no such file" } }).status).toBe("incomplete");
    expect(classify(withHeartbeat(LIMIT * 100, ["state"])).status).toBe("incomplete");
  });

  it("incomplete, with the reason, if it cannot be read at all", () => {
    const observation = {
      missing: ["meta"],
      heartbeat: { absent: "x" },
      unreadable: "cannot be read (EACCES)",
    };
    expect(classify(observation)).toMatchObject({ status: "incomplete", reason: "cannot be read (EACCES)" });
  });

  it("else uninitialized if the heartbeat has no timestamp", () => {
    expect(classify({ missing: [], heartbeat: { absent: "not JSON" } })).toEqual({
      status: "uninitialized",
      ageSeconds: null,
      skewSeconds: null,
      reason: "heartbeat: not JSON",
    });
  });

  it("else stale if age_seconds > stale_after_seconds", () => {
    expect(classify(withHeartbeat(LIMIT + 0.001))).toMatchObject({ status: "stale", ageSeconds: LIMIT });
    expect(classify(withHeartbeat(LIMIT + 61)).reason).toBe("no heartbeat for 241 s (limit 180 s)");
  });

  it("else healthy, even at exactly the limit", () => {
    expect(classify(withHeartbeat(LIMIT))).toEqual({
      status: "healthy",
      ageSeconds: LIMIT,
      skewSeconds: null,
      reason: null,
    });
  });

  it("healthy and reported with its skew when its heartbeat is in the future", () => {
    expect(classify(withHeartbeat(-30.2))).toEqual({
      status: "healthy",
      ageSeconds: 0,
      skewSeconds: 31,
      reason: null,
    });
  });
});

it("every observation has exactly one state, an age in whole seconds that is never negative, and a reason unless healthy", () => {
  const observations = fc.record({
    missing: fc.array(fc.constantFrom("meta", "state", "logs")),
    heartbeat: fc.oneof(
      fc.record({ timestamp: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
      fc.record({ absent: fc.string() }),
    ),
  });
  fc.assert(
    fc.property(
      observations,
      fc.double({ min: 0, max: 1e11, noNaN: true }),
      fc.double({ min: 1e-3, max: 1e9, noNaN: true }),
      (observation, now, limit) => {
        const { status, ageSeconds, skewSeconds, reason } = classifyCell(observation, now, limit);
        expect(["healthy", "stale", "incomplete", "uninitialized"]).toContain(status);
        expect(ageSeconds === null || (Number.isInteger(ageSeconds) && ageSeconds >= 0)).toBe(true);
        expect(skewSeconds === null || skewSeconds > 0).toBe(true);
        expect(reason === null).toBe(status === "healthy");
      },
    ),
  );
});
