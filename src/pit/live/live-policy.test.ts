import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BURST_CHANGES, isAuditDue, type LiveLimits, type LiveState, nextPointMs } from "./live-policy.ts";

const limits: LiveLimits = { withinMs: 30_000, quietMs: 2000, share: 0.05, auditMs: 3_600_000 };
const idle: LiveState = {
  firstUnsavedMs: undefined,
  lastChangeMs: undefined,
  unsavedChanges: 0,
  urgentMs: undefined,
  isWatched: true,
  lastEndMs: 0,
  lastTookMs: 100,
  hasFailed: false,
  lastAuditMs: 0,
};
const changed = (firstUnsavedMs: number, lastChangeMs = firstUnsavedMs, unsavedChanges = 1): LiveState => ({
  ...idle,
  firstUnsavedMs,
  lastChangeMs,
  unsavedChanges,
});

describe("the next live point is due", () => {
  it.each<[string, LiveState, number]>([
    ["after a quiet time", changed(10_000), 12_000],
    ["after the last of several changes", changed(10_000, 15_000), 17_000],
    ["within the limit while changes continue", changed(10_000, 39_999), 40_000],
    ["at the next audit when nothing changed", idle, 3_600_000],
    ["at the next audit, although other points were taken", { ...idle, lastEndMs: 3_599_000 }, 3_600_900],
    ["immediately at the end of a turn", { ...changed(10_000), urgentMs: 10_500 }, 10_500],
    [
      "immediately at the end of a turn if the cell cannot be watched",
      { ...idle, isWatched: false, urgentMs: 5000 },
      5000,
    ],
    [
      "at the end of a turn, but not before the time share of the last point allows it",
      { ...idle, urgentMs: 10_500, lastTookMs: 1000 },
      19_000,
    ],
    ["at every interval where nothing can be watched", { ...idle, isWatched: false }, 30_000],
    ["not before the time share of the last one allows it", { ...changed(10_000), lastTookMs: 1000 }, 19_000],
    ["at the end of a burst", changed(10_000, 20_000, BURST_CHANGES), 22_000],
    ["two minutes into a burst", changed(10_000, 129_999, BURST_CHANGES), 130_000],
    ["some time after a failure", { ...changed(10_000), hasFailed: true, lastEndMs: 12_000 }, 42_000],
  ])("%s", (_, state, dueMs) => {
    expect(nextPointMs(state, limits)).toBe(dueMs);
  });

  it("never so soon that points take more than their share of the time", () => {
    const state = fc.record({
      firstUnsavedMs: fc.option(fc.nat(), { nil: undefined }),
      lastChangeMs: fc.option(fc.nat(), { nil: undefined }),
      unsavedChanges: fc.nat(10_000),
      urgentMs: fc.option(fc.nat(), { nil: undefined }),
      isWatched: fc.boolean(),
      lastEndMs: fc.nat(),
      lastTookMs: fc.nat(100_000),
      hasFailed: fc.boolean(),
      lastAuditMs: fc.nat(),
    });
    fc.assert(
      fc.property(state, (each) => {
        const pauseMs = nextPointMs(each, limits) - each.lastEndMs;
        expect(each.lastTookMs).toBeLessThanOrEqual(limits.share * (each.lastTookMs + pauseMs) + 1e-6);
      }),
    );
  });

  it("within the limit, if points are cheap and this is no burst", () => {
    const input = fc.record({ first: fc.nat(), more: fc.nat(1e6), took: fc.nat(1000) });
    fc.assert(
      fc.property(input, ({ first, more, took }) => {
        const state = { ...changed(first, first + more), lastEndMs: first, lastTookMs: took };
        expect(nextPointMs(state, limits)).toBeLessThanOrEqual(first + limits.withinMs);
      }),
    );
  });

  it("as an audit at every interval, even while changes continue", () => {
    expect(isAuditDue({ ...changed(3_599_000), lastAuditMs: 1000 }, limits, 3_600_999)).toBe(false);
    expect(isAuditDue({ ...changed(3_599_000), lastAuditMs: 1000 }, limits, 3_601_000)).toBe(true);
  });
});
