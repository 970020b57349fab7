// The simulated clock: which sleepers wake, when, and in which order.
import { describe, expect, it } from "vitest";
import { createSimulatedClock, SIMULATED_START_MS } from "./simulated-clock.ts";

describe("simulated clock", () => {
  it("stands still until advanced", async () => {
    const clock = createSimulatedClock();
    const before = clock.nowMs();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect([before, clock.nowMs(), clock.monotonicMs()]).toEqual([SIMULATED_START_MS, SIMULATED_START_MS, 0]);
    await clock.advance(1500);
    expect([clock.nowMs() - before, clock.monotonicMs()]).toEqual([1500, 1500]);
  });

  it("wakes sleepers in the order of their deadlines, each at its own time", async () => {
    const clock = createSimulatedClock();
    const woken: string[] = [];
    const sleep = async (name: string, ms: number) => {
      await clock.sleep(ms);
      woken.push(`${name} at ${clock.monotonicMs()}`);
    };
    for (const [name, ms] of [
      ["c", 30],
      ["a", 10],
      ["b", 20],
      ["b2", 20],
      ["late", 31],
    ] as const)
      sleep(name, ms);
    await clock.advance(30);
    expect(woken).toEqual(["a at 10", "b at 20", "b2 at 20", "c at 30"]);
    expect(clock.sleepers).toBe(1);
  });

  it("wakes a loop that sleeps again as often as it would in real time", async () => {
    const clock = createSimulatedClock();
    let beats = 0;
    void (async () => {
      for (;;) {
        await clock.sleep(60_000);
        beats += 1;
      }
    })();
    await clock.advance(10 * 60_000);
    expect(beats).toBe(10);
  });

  it("wakes no sleeper when only the wall clock jumps", async () => {
    const clock = createSimulatedClock();
    let awake = false;
    clock.sleep(10).then(() => {
      awake = true;
    });
    clock.jumpWallClock(3_600_000);
    clock.jumpWallClock(-7_200_000);
    await clock.advance(9);
    expect([awake, clock.nowMs() - SIMULATED_START_MS, clock.monotonicMs()]).toEqual([false, -3_599_991, 9]);
    await clock.advance(1);
    expect(awake).toBe(true);
  });

  it("wakes an aborted sleeper immediately", async () => {
    const clock = createSimulatedClock();
    const controller = new AbortController();
    const sleeping = clock.sleep(1000, controller.signal);
    controller.abort();
    await sleeping;
    await clock.sleep(1000, controller.signal);
    expect([clock.sleepers, clock.monotonicMs()]).toEqual([0, 0]);
  });

  it("refuses a negative duration", async () => {
    await expect(createSimulatedClock().advance(-1)).rejects.toThrow("time does not go back");
  });
});
