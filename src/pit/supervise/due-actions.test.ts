// Each task of the pit on a simulated clock.
import { describe, expect, test } from "vitest";
import type { MissionId } from "../../cell/mission-id.ts";
import { type AgentTimers, dueActions, type SupervisionState } from "./due-actions.ts";

const WALL = Date.UTC(2026, 10, 16);
const m1 = "m1" as MissionId;
const m2 = "m2" as MissionId;

/** Both clocks, this long after the last tick. */
const after = (ms: number) => ({ wallMs: WALL + ms, monotonicMs: ms });

const idle: SupervisionState = {
  lastTick: after(0),
  intervalsMs: {
    heartbeat: undefined,
    watchdog: undefined,
    rescan: undefined,
    "check-silence": undefined,
    "live-points": undefined,
  },
  lastRunMs: { heartbeat: 0, watchdog: 0, rescan: 0, "check-silence": 0, "live-points": 0 },
  ended: [],
  nextChecksMs: new Map(),
  agents: [],
};

const agent = (change: Partial<AgentTimers>): AgentTimers => ({
  mission: m1,
  checkpointEveryMs: null,
  checkpointedMs: 0,
  stallCheckEveryMs: undefined,
  stallCheckedMs: 0,
  ...change,
});

test("nothing is due without missions and intervals", () => {
  expect(dueActions(idle, after(1e9))).toEqual([]);
});

test("a mission is checked as soon as its keeper has ended", () => {
  expect(dueActions({ ...idle, ended: [m1] }, after(50))).toEqual([{ kind: "check-mission", mission: m1 }]);
});

describe("a mission with a scheduled check", () => {
  const state = { ...idle, nextChecksMs: new Map([[m1, WALL + 1000]]) };
  test("waits for that time", () => {
    expect(dueActions(state, after(999))).toEqual([]);
    expect(dueActions(state, after(1000))).toEqual([{ kind: "check-mission", mission: m1 }]);
  });
  test("is checked once when its keeper has ended as well", () => {
    expect(dueActions({ ...state, ended: [m1] }, after(1000))).toEqual([
      { kind: "check-mission", mission: m1 },
    ]);
  });
  test("follows the wall clock after the host slept", () => {
    const actions = dueActions(state, { wallMs: WALL + 3_600_000, monotonicMs: 50 });
    expect(actions).toContainEqual({ kind: "check-mission", mission: m1 });
  });
  test("is checked immediately when the clock was set back", () => {
    const actions = dueActions(state, { wallMs: WALL - 3_600_000, monotonicMs: 50 });
    expect(actions).toEqual([{ kind: "check-mission", mission: m1 }]);
  });
});

test("all timeouts restart after the host slept", () => {
  const actions = dueActions(idle, { wallMs: WALL + 3_600_000, monotonicMs: 1000 });
  expect(actions).toEqual([{ kind: "restart-timeouts", sleptMs: 3_599_000 }]);
});

test.each(["heartbeat", "watchdog", "rescan"] as const)("%s runs at its interval", (task) => {
  const state = {
    ...idle,
    intervalsMs: { ...idle.intervalsMs, [task]: 5000 },
    lastRunMs: { ...idle.lastRunMs, [task]: 2000 },
  };
  expect(dueActions(state, after(6999))).toEqual([]);
  expect(dueActions(state, after(7000))).toEqual([{ kind: task }]);
});

test("the first heartbeat is due immediately", () => {
  const state = {
    ...idle,
    intervalsMs: { ...idle.intervalsMs, heartbeat: 60_000 },
    lastRunMs: { ...idle.lastRunMs, heartbeat: Number.NEGATIVE_INFINITY },
  };
  expect(dueActions(state, after(0))).toEqual([{ kind: "heartbeat" }]);
});

test("an agent with a stall limit is checked at its interval, others never", () => {
  const agents = [agent({ stallCheckEveryMs: 250, stallCheckedMs: 100 }), agent({ mission: m2 })];
  expect(dueActions({ ...idle, agents }, after(349))).toEqual([]);
  expect(dueActions({ ...idle, agents }, after(350))).toEqual([{ kind: "check-stall", mission: m1 }]);
});

test("an agent with a schedule gets its checkpoint at the interval, others never", () => {
  const agents = [agent({ checkpointEveryMs: 60_000, checkpointedMs: 500 }), agent({ mission: m2 })];
  expect(dueActions({ ...idle, agents }, after(60_499))).toEqual([]);
  expect(dueActions({ ...idle, agents }, after(60_500))).toEqual([{ kind: "checkpoint", mission: m1 }]);
});

test("timeouts restart before stalls are checked", () => {
  const agents = [agent({ stallCheckEveryMs: 250 })];
  const actions = dueActions({ ...idle, agents }, { wallMs: WALL + 3_600_000, monotonicMs: 1000 });
  expect(actions.map(({ kind }) => kind)).toEqual(["restart-timeouts", "check-stall"]);
});
