// The system clock and the simulated clock have the same contract.
import { describe, expect, it } from "vitest";
import { createSimulatedClock } from "../testing/simulated-clock.ts";
import { epochSeconds, systemClock } from "./clock.ts";

describe("systemClock", () => {
  it("returns the time and never goes backwards", async () => {
    const earlier = Date.now();
    expect(systemClock.nowMs()).toBeGreaterThanOrEqual(earlier);
    expect(systemClock.nowMs()).toBeLessThanOrEqual(Date.now());
    const before = systemClock.monotonicMs();
    await systemClock.sleep(20);
    expect(systemClock.monotonicMs() - before).toBeGreaterThanOrEqual(19);
  });

  it("wakes immediately when the signal aborts, or has aborted", async () => {
    const controller = new AbortController();
    const sleeping = systemClock.sleep(60_000, controller.signal);
    controller.abort();
    await sleeping;
    await systemClock.sleep(60_000, controller.signal);
  });

  it("sleeps longer than the maximum of setTimeout", async () => {
    const controller = new AbortController();
    let awake = false;
    const sleeping = systemClock.sleep(2 ** 31 + 5, controller.signal).then(() => {
      awake = true;
    });
    await systemClock.sleep(30);
    expect(awake).toBe(false);
    controller.abort();
    await sleeping;
  });
});

it("epochSeconds keeps the milliseconds", () => {
  expect(epochSeconds(createSimulatedClock(1_700_000_000_123))).toBe(1_700_000_000.123);
});
