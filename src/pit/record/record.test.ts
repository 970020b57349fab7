// The record over whole histories: a small world in which an agent dies again and again, driven by the real transitions
// and the real policy.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEFAULT_LIMITS, decideRevival } from "../death/policy.ts";
import {
  beginLife,
  endLife,
  enterDecision,
  grant,
  keepScene,
  type MissionRecord,
  nextStep,
  noteStall,
  order,
  type RecordedEnd,
  refreshDecision,
  setWish,
  situationOf,
  troubleStartMs,
} from "./record.ts";

const START = Date.UTC(2026, 10, 16);
const HOUR = 3_600_000;

const ORDERS = {
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
  enterDecision(
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

const started = beginLife(order(undefined, ORDERS, START), life(1, START));

describe("what is still to be done", () => {
  test("follows the order: end, scene, decision, wait", () => {
    expect(nextStep(order(undefined, ORDERS, START))).toBe("nothing");
    expect(nextStep(started)).toBe("record-end");
    const ended = endLife(started, end(1, START + 1000), DEFAULT_LIMITS);
    expect(nextStep(ended)).toBe("keep-scene");
    const kept = keepScene(ended, { epoch: 1, checkpoint: "c1", error: null });
    expect(nextStep(kept)).toBe("decide");
    expect(nextStep(decide(kept, START + 1000))).toBe("wait");
  });

  test("begins anew with the next life", () => {
    const decided = decide(
      keepScene(endLife(started, end(1, START), DEFAULT_LIMITS), { epoch: 1, checkpoint: "c", error: null }),
      START,
    );
    expect(nextStep(beginLife(decided, life(2, START, "revival")))).toBe("record-end");
  });
});

test("a revival is counted when it begins", () => {
  const revived = beginLife(started, life(2, START + 5, "revival"));
  expect(revived).toMatchObject({ attempt: 1, revivals_ms: [START + 5] });
});

test("a healthy life forgives earlier crashes, but not the count of revivals", () => {
  const weary = {
    ...started,
    attempt: 4,
    steps_back: 1,
    revivals_ms: [START],
    deaths: [{ fingerprint: "x", at_ms: 1 }],
  };
  const ended = endLife(weary, end(1, START + 10 * 60_000), DEFAULT_LIMITS);
  expect(ended).toMatchObject({ attempt: 0, steps_back: 0, revivals_ms: [START] });
  expect(ended.deaths).toHaveLength(1);
});

test("a life that never began is no reason to back off", () => {
  const revived = beginLife(started, life(2, START, "revival"));
  const unborn = end(2, START, { evidence: [{ kind: "never-started", says: "" }] });
  expect(endLife(revived, unborn, DEFAULT_LIMITS)).toMatchObject({
    attempt: 0,
    deaths: [],
    revivals_ms: [START],
  });
});

test("a stop takes a revival that was under way back", () => {
  const decided = decide(
    keepScene(endLife(started, end(1, START), DEFAULT_LIMITS), { epoch: 1, checkpoint: "c", error: null }),
    START,
  );
  expect(nextStep(setWish(decided, "stopped", START))).toBe("nothing");
});

test("a human's revive lifts latch and tombstone", () => {
  const dead = enterDecision(
    { ...started, wish: "stopped" },
    { action: "tombstone", reason: "enough" },
    START,
  );
  expect(grant(dead, START)).toMatchObject({ wish: "running", tombstone: null, attempt: 0, deaths: [] });
});

test("a stall is noted for the life it concerns", () => {
  expect(noteStall(started, START, "silent").stalled).toMatchObject({ epoch: 1, reason: "silent" });
  expect(beginLife(noteStall(started, START, "silent"), life(2, START, "revival")).stalled).toBeNull();
});

test("trouble begins with the first death since a healthy life", () => {
  const deaths = [
    { fingerprint: "other", at_ms: 1 },
    { fingerprint: "same", at_ms: 2 },
    { fingerprint: "same", at_ms: 3 },
  ];
  expect(troubleStartMs({ ...started, deaths })).toBe(1);
  expect(troubleStartMs(started)).toBeUndefined();
});

describe("a decision that waits", () => {
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
  test("stays as it is until its time has come, and a while after", () => {
    for (const nowMs of [START, START + HOUR, START + DAY + HOUR]) {
      const record = waiting(START, HOUR);
      expect(refreshDecision(record, nowMs, DAY)).toBe(record);
    }
    const resting = setWish(waiting(START, HOUR), "stopped", START);
    expect(refreshDecision(resting, START - DAY, DAY)).toBe(resting);
  });
  test("is made again when its time is longer past than deaths are acted upon", () => {
    const late = refreshDecision(waiting(START, HOUR), START + HOUR + DAY + 1, DAY);
    expect(late.decision).toBeNull();
  });
  test("waits as long as it was meant to when the clock was set back", () => {
    const early = refreshDecision(waiting(START, 10_000), START - DAY, DAY);
    expect(early.decision).toMatchObject({ decided_ms: START - DAY, at_ms: START - DAY + 10_000 });
  });
});

test("unknown fields stay", () => {
  const strange = { ...started, note_of_another_tool: "kept" } as MissionRecord;
  const after = decide(
    keepScene(endLife(strange, end(1, START), DEFAULT_LIMITS), { epoch: 1, checkpoint: null, error: null }),
    START,
  );
  expect(order(after, ORDERS, START)).toMatchObject({ note_of_another_tool: "kept" });
});

test("every history ends: however it dies, it is not revived for ever, nor more often than allowed", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          lifeMs: fc.nat(9 * 60_000),
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
          record = endLife(record, end(epoch, nowMs, { fingerprint }), DEFAULT_LIMITS);
          record = keepScene(record, { epoch, checkpoint: "c", error: null });
          record = decide(record, nowMs, ["c1", "c2", "c3"].slice(0, checkpoints));
          const lastHour = record.revivals_ms.filter((ms) => nowMs - ms < HOUR).length;
          expect(lastHour).toBeLessThanOrEqual(DEFAULT_LIMITS.maxRevivalsPerHour);
          if (nextStep(record) === "nothing") return;
          nowMs = Math.max(nowMs, record.decision!.at_ms!);
          epoch += 1;
          record = beginLife(record, life(epoch, nowMs, "revival"));
        }
        expect.unreachable("thirty short lives in a row must have met a limit");
      },
    ),
  );
});
