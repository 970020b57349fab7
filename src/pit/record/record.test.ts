// The transitions of a record, alone and over whole histories of an agent that keeps dying under the real policy.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEFAULT_LIMITS, decideRevival, situationOf } from "../death/policy.ts";
import { refreshDecision } from "./pending.ts";
import {
  approveRevival,
  beginLife,
  createRecord,
  endLife,
  firstDeathMs,
  type MissionRecord,
  markStalled,
  nextStep,
  type RecordedEnd,
  setCheckpoint,
  setDecision,
  setDesiredState,
} from "./record.ts";

const START = Date.UTC(2026, 10, 16);
const HOUR = 3_600_000;

const SPEC = {
  mission: "m1",
  agent: "agent",
  command: ["agent"],
  cwd: null,
  env: {},
  revive: "yes",
  substitute: null,
  stall_seconds: null,
} as const;

const life = (epoch: number, started_ms: number, how: "start" | "revival" = "start") => ({
  epoch,
  started_ms,
  how,
  command: ["agent"],
  oom_kills: null,
  log_bytes: 0,
});

const end = (epoch: number, at_ms: number, change: Partial<RecordedEnd> = {}): RecordedEnd => ({
  epoch,
  kind: "crash",
  exit_code: 1,
  signal: null,
  at_ms,
  noticed_ms: at_ms,
  fingerprint: "same",
  quota_reset_ms: null,
  evidence: [],
  last_words: [],
  leftovers: 0,
  ...change,
});

const decide = (record: MissionRecord, nowMs: number, olderCheckpoints: string[] = []) =>
  setDecision(
    record,
    decideRevival(
      situationOf(record, {
        mode: record.revive ?? "ask",
        limits: DEFAULT_LIMITS,
        olderCheckpoints,
        obstacle: null,
        nowMs,
        chance: 0.5,
      }),
    ),
    nowMs,
  );

const started = beginLife(createRecord(undefined, SPEC, START), life(1, START));

describe("the next step", () => {
  test("is end, checkpoint, decision, wait", () => {
    expect(nextStep(createRecord(undefined, SPEC, START))).toBe("none");
    expect(nextStep(started)).toBe("record-end");
    const ended = endLife(started, end(1, START + 1000), DEFAULT_LIMITS.healthyMs);
    expect(nextStep(ended)).toBe("checkpoint");
    const kept = setCheckpoint(ended, { epoch: 1, checkpoint: "c1", error: null });
    expect(nextStep(kept)).toBe("decide");
    expect(nextStep(decide(kept, START + 1000))).toBe("wait");
  });

  test("starts over with the next life", () => {
    const decided = decide(
      setCheckpoint(endLife(started, end(1, START), DEFAULT_LIMITS.healthyMs), {
        epoch: 1,
        checkpoint: "c",
        error: null,
      }),
      START,
    );
    expect(nextStep(beginLife(decided, life(2, START, "revival")))).toBe("record-end");
  });
});

test("an agent that ends before its conversation starts is revived only in the background", () => {
  const action = (change: Partial<MissionRecord>, turn: number | null = null) =>
    decide(endLife({ ...started, ...change }, end(1, START, { turn }), DEFAULT_LIMITS.healthyMs), START)
      .decision?.action;
  const terminal = { columns: 80, rows: 24 };
  const foreground = { pid: 1, startTime: "1", bootId: "b" };
  expect(action({})).toBe("revive");
  expect(action({ terminal })).toBe("ask");
  expect(action({ life: { ...life(1, START), foreground } })).toBe("ask");
  expect(action({ terminal }, 1)).toBe("revive");
  expect(action({ terminal, life: life(1, START, "revival") })).toBe("revive");
});

test("a revival is counted when it starts", () => {
  const revived = beginLife(started, life(2, START + 5, "revival"));
  expect(revived).toMatchObject({ attempt: 1, revivals_ms: [START + 5] });
});

test("ten healthy minutes reset the backoff, but not the count of revivals", () => {
  const backedOff = {
    ...started,
    attempt: 4,
    steps_back: 1,
    revivals_ms: [START],
    deaths: [{ fingerprint: "x", at_ms: 1 }],
  };
  const ended = endLife(backedOff, end(1, START + 10 * 60_000), DEFAULT_LIMITS.healthyMs);
  expect(ended).toMatchObject({ attempt: 0, steps_back: 0, revivals_ms: [START] });
  expect(ended.deaths).toHaveLength(1);
});

test("a life one millisecond short of ten minutes does not reset the backoff", () => {
  const backedOff = { ...started, attempt: 4 };
  const atMs = START + 10 * 60_000;
  expect(endLife(backedOff, end(1, atMs - 1), DEFAULT_LIMITS.healthyMs).attempt).toBe(4);
  expect(endLife(backedOff, end(1, atMs), DEFAULT_LIMITS.healthyMs).attempt).toBe(0);
});

test("an agent that failed to start causes no backoff", () => {
  const revived = beginLife(started, life(2, START, "revival"));
  const notStarted = end(2, START, { evidence: [{ kind: "never-started", says: "" }] });
  expect(endLife(revived, notStarted, DEFAULT_LIMITS.healthyMs)).toMatchObject({
    attempt: 0,
    deaths: [],
    revivals_ms: [START],
  });
});

test("a stop cancels a pending revival", () => {
  const decided = decide(
    setCheckpoint(endLife(started, end(1, START), DEFAULT_LIMITS.healthyMs), {
      epoch: 1,
      checkpoint: "c",
      error: null,
    }),
    START,
  );
  expect(nextStep(setDesiredState(decided, "stopped", START))).toBe("none");
});

test("a user's revival clears latch and tombstone", () => {
  const dead = setDecision({ ...started, wish: "stopped" }, { action: "tombstone", reason: "enough" }, START);
  expect(approveRevival(dead, START)).toMatchObject({
    wish: "running",
    tombstone: null,
    attempt: 0,
    deaths: [],
  });
});

test("a stall belongs to one life", () => {
  expect(markStalled(started, START, "silent").stalled).toMatchObject({ epoch: 1, reason: "silent" });
  expect(beginLife(markStalled(started, START, "silent"), life(2, START, "revival")).stalled).toBeNull();
});

test("firstDeathMs is the first death since the last healthy life", () => {
  const deaths = [
    { fingerprint: "other", at_ms: 1 },
    { fingerprint: "same", at_ms: 2 },
    { fingerprint: "same", at_ms: 3 },
  ];
  expect(firstDeathMs({ ...started, deaths })).toBe(1);
  expect(firstDeathMs(started)).toBeUndefined();
});

describe("a pending decision", () => {
  const DAY = 24 * HOUR;
  const waiting = (decidedMs: number, waitMs: number): MissionRecord => ({
    ...started,
    decision: {
      epoch: 1,
      action: "revive",
      reason: "",
      decided_ms: decidedMs,
      at_ms: decidedMs + waitMs,
      step_back_to: null,
    },
  });
  test("stays unchanged until its time and for a while after", () => {
    for (const nowMs of [START, START + HOUR, START + DAY + HOUR]) {
      const record = waiting(START, HOUR);
      expect(refreshDecision(record, nowMs, DAY)).toBe(record);
    }
    const resting = setDesiredState(waiting(START, HOUR), "stopped", START);
    expect(refreshDecision(resting, START - DAY, DAY)).toBe(resting);
  });
  test("is made again when its time passed more than the maximum age ago", () => {
    const late = refreshDecision(waiting(START, HOUR), START + HOUR + DAY + 1, DAY);
    expect(late.decision).toBeNull();
  });
  test("restarts its wait when the clock was set back", () => {
    const early = refreshDecision(waiting(START, 10_000), START - DAY, DAY);
    expect(early.decision).toMatchObject({ decided_ms: START - DAY, at_ms: START - DAY + 10_000 });
  });
});

test("unknown fields survive", () => {
  const extended = { ...started, note_of_another_tool: "kept" } as MissionRecord;
  const after = decide(
    setCheckpoint(endLife(extended, end(1, START), DEFAULT_LIMITS.healthyMs), {
      epoch: 1,
      checkpoint: null,
      error: null,
    }),
    START,
  );
  expect(createRecord(after, SPEC, START)).toMatchObject({ note_of_another_tool: "kept" });
});

test("every history of short lives ends, within the hourly limit of revivals", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          lifeMs: fc.nat(2 * 60_000),
          fingerprint: fc.constantFrom("a", "b", "c"),
          checkpoints: fc.nat(3),
        }),
        { minLength: 30, maxLength: 60 },
      ),
      (deaths) => {
        let record = started;
        let nowMs = START;
        let epoch = 1;
        for (const { lifeMs, fingerprint, checkpoints } of deaths) {
          nowMs += lifeMs;
          record = endLife(record, end(epoch, nowMs, { fingerprint }), DEFAULT_LIMITS.healthyMs);
          record = setCheckpoint(record, { epoch, checkpoint: "c", error: null });
          record = decide(record, nowMs, ["c1", "c2", "c3"].slice(0, checkpoints));
          const lastHour = record.revivals_ms.filter((ms) => nowMs - ms < HOUR).length;
          expect(lastHour).toBeLessThanOrEqual(DEFAULT_LIMITS.maxRevivalsPerHour);
          if (nextStep(record) === "none") return;
          nowMs = Math.max(nowMs, record.decision!.at_ms!);
          epoch += 1;
          record = beginLife(record, life(epoch, nowMs, "revival"));
        }
        expect.unreachable("thirty short lives in a row must reach a limit");
      },
    ),
  );
});
