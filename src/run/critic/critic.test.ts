import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSimulatedClock } from "../../testing/simulated-clock.ts";
import type { RunInfo } from "../model/types.ts";
import { type CriticOptions, type CriticProgress, createCritic } from "./critic.ts";
import { decideMove, type Escalation } from "./decide.ts";

const info = { runId: "r", agentId: "a" } as RunInfo;

function bench(options: Omit<CriticOptions, "clock">) {
  const clock = createSimulatedClock();
  const did: string[] = [];
  const asked: CriticProgress[] = [];
  const critic = createCritic({
    ...options,
    clock,
    onSoftTimeout: (run, progress) => {
      asked.push(progress);
      return options.onSoftTimeout?.(run, progress);
    },
  });
  const watch = critic!.watch(info, {
    nudge: (text) => did.push(`nudge ${text}`),
    kill: (reason) => did.push(`kill ${reason}`),
    raiseStepsBy: (steps) => did.push(`raise ${steps}`),
  })!;
  return { clock, did, asked, watch };
}

describe("critic", () => {
  test("without a timeout there is no watchdog", () => {
    expect(createCritic({})).toBeUndefined();
    expect(createCritic({ softTimeoutMs: 0 })).toBeUndefined();
  });
  test("asks once per idle period, and kills at the hard limit", async () => {
    const { clock, did, asked, watch } = bench({ softTimeoutMs: 1000, hardMultiplier: 3 });
    watch.stepDone(4);
    await clock.advance(1000);
    expect(asked).toMatchObject([{ iterations: 4, idleMs: 1000, lastTool: null }]);
    await clock.advance(1999);
    expect(asked.length).toBe(1);
    expect(did).toEqual([]);
    await clock.advance(1);
    expect(did).toMatchObject([expect.stringContaining("kill")]);
    await clock.advance(100_000);
    expect(did.length).toBe(1);
  });
  test("a kill is final", async () => {
    const { clock, did, asked, watch } = bench({ softTimeoutMs: 1000, hardMultiplier: 2 });
    await clock.advance(2000);
    watch.activity();
    watch.toolStarted("late");
    watch.toolEnded();
    await clock.advance(100_000);
    expect([did.length, asked.length]).toEqual([1, 1]);
  });
  test.each([Number.NaN, Number.POSITIVE_INFINITY, -5])(
    "a multiplier of %s keeps a hard limit",
    async (hardMultiplier) => {
      const { clock, did } = bench({ softTimeoutMs: 1000, hardMultiplier });
      await clock.advance(3000);
      expect(did).toMatchObject([expect.stringContaining("kill")]);
    },
  );
  test("activity starts a new idle period", async () => {
    const { clock, did, asked, watch } = bench({ softTimeoutMs: 1000, hardMultiplier: 3 });
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(1500);
      watch.activity();
    }
    expect(asked.length).toBe(5);
    expect(did).toEqual([]);
    watch.stop();
    await clock.advance(10_000);
    expect(did).toEqual([]);
  });
  test("a tool call in flight is not idle", async () => {
    const { clock, did, asked, watch } = bench({ softTimeoutMs: 1000 });
    watch.toolStarted("crawl");
    await clock.advance(60_000);
    expect([asked, did]).toEqual([[], []]);
    watch.toolEnded();
    await clock.advance(1000);
    expect(asked).toMatchObject([{ lastTool: "crawl" }]);
  });
  test("applies the answers of the escalator", async () => {
    const answers: Escalation[] = [
      { nudge: "hurry", raiseStepsBy: 5 },
      { kill: true, killReason: "enough" },
    ];
    const { clock, did, watch } = bench({ softTimeoutMs: 1000, onSoftTimeout: () => answers.shift() });
    await clock.advance(1000);
    watch.activity();
    await clock.advance(1000);
    expect(did).toEqual(["nudge hurry", "raise 5", "kill enough"]);
  });
  test("extends a run once, or as often as asked with extendOnce: false", async () => {
    for (const [extendOnce, lives] of [
      [true, 5000],
      [false, 5000],
    ] as const) {
      const { clock, did, watch } = bench({
        ...{ softTimeoutMs: 1000, hardMultiplier: 2, extendOnce },
        onSoftTimeout: () => ({ extendBy: 3000 }),
      });
      await clock.advance(lives - 1);
      expect(did).toEqual([]);
      watch.activity();
      await clock.advance(2000);
      expect(did.length).toBe(extendOnce ? 1 : 0);
      watch.stop();
    }
  });
  test.each([
    ["throws", () => Promise.reject(new Error("down"))],
    ["never answers", () => new Promise<undefined>(() => {})],
    ["gives an invalid answer", () => ({ extendBy: Number.NaN, nudge: 7, raiseStepsBy: -1 }) as never],
  ])("an escalator that %s counts as no decision", async (_, onSoftTimeout) => {
    const { clock, did } = bench({ softTimeoutMs: 1000, hardMultiplier: 2, onSoftTimeout });
    await clock.advance(1999);
    expect(did).toEqual([]);
    await clock.advance(1);
    expect(did.length).toBe(1);
  });
  test("always kills past the hard limit", () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.nat(1e5), fc.boolean(), fc.nat(1e5), (last, extendedByMs, asked, more) => {
        const limits = { softMs: 1000, hardMultiplier: 3 };
        const state = { lastActivityMs: last, toolsInFlight: 0, asked, extendedByMs, killed: false };
        expect(decideMove(state, limits, last + 3000 + extendedByMs + more).move).toBe("kill");
        expect(decideMove({ ...state, killed: true }, limits, last + 1e9).move).toBe("rest");
      }),
    );
  });
});
