// One row per rule of the revival policy, and properties that hold for every situation.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REVIVE_MODES } from "../record/record.ts";
import { DEFAULT_LIMITS, decideRevival, type End, type PolicyLimits, type Situation } from "./policy.ts";

const NOW = Date.UTC(2026, 10, 16);
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const killed: End = {
  kind: "crash",
  exitCode: null,
  signal: "SIGKILL",
  class: "crash",
  atMs: NOW,
  fingerprint: "killed",
  quotaResetMs: null,
};

/** Crashes, the first of them `sinceMs` ago. */
function crashes(fingerprints: readonly string[], sinceMs = MINUTE): Situation["recentCrashes"] {
  return fingerprints.map((fingerprint, n) => ({ fingerprint, atMs: NOW - (n === 0 ? sinceMs : 0) }));
}
function alike(count: number, sinceMs?: number): Situation["recentCrashes"] {
  return crashes(
    Array.from({ length: count }, () => "killed"),
    sinceMs,
  );
}

function situation(change: Partial<Situation> = {}, end: Partial<End> = {}): Situation {
  return {
    mode: "yes",
    desiredState: "running",
    end: { ...killed, ...end },
    lastSeenMs: NOW - MINUTE,
    revivalsMs: [],
    attempt: 0,
    retries: 0,
    crashCheckpoint: "c4",
    recentCrashes: alike(1),
    olderCheckpoints: ["c3", "c2", "c1"],
    stepsBack: 0,
    unansweredCalls: [],
    hasConversation: false,
    isIdle: false,
    isRejected: false,
    obstacle: null,
    nowMs: NOW,
    chance: 0.5,
    limits: DEFAULT_LIMITS,
    ...change,
  };
}

const recent = (count: number) => Array.from({ length: count }, (_, n) => NOW - (n + 1) * MINUTE).reverse();

const ROWS: [sentence: string, situation: Situation, expected: object][] = [
  [
    "a cut-off call that matches the effect rules asks the user, and names it",
    situation({ unansweredCalls: ["Bash git push"] }),
    { action: "ask", reason: "cut off, outcome unknown: Bash git push" },
  ],
  [
    "a cut-off call does not ask when nothing would be revived anyway",
    situation({ unansweredCalls: ["Bash git push"], mode: "no" }),
    { action: "rest" },
  ],
  [
    "an agent that cannot continue its conversation three times in a row asks: older files would not help",
    situation({ isIdle: true, recentCrashes: alike(3, SECOND) }),
    { action: "ask" },
  ],
  [
    "an agent that rejects its options in front of its user is not started again",
    situation({ hasConversation: true, isIdle: true, isRejected: true }),
    { action: "ask" },
  ],
  [
    "a permanent error of an agent with a conversation asks",
    situation({ hasConversation: true }, { class: "permanent" }),
    { action: "ask" },
  ],
  [
    "the first crash is revived without backoff",
    situation(),
    { action: "revive", atMs: NOW, stepBackTo: null },
  ],
  ["the second revival waits 10 s", situation({ attempt: 1 }), { action: "revive", atMs: NOW + 10 * SECOND }],
  ["the third revival waits 20 s", situation({ attempt: 2 }), { action: "revive", atMs: NOW + 20 * SECOND }],
  ["the fourth revival waits 40 s", situation({ attempt: 3 }), { action: "revive", atMs: NOW + 40 * SECOND }],
  ["no backoff exceeds 300 s", situation({ attempt: 99 }), { action: "revive", atMs: NOW + 300 * SECOND }],
  [
    "jitter shortens the backoff by up to 20 %",
    situation({ attempt: 1, chance: 0 }),
    { atMs: NOW + 8 * SECOND },
  ],
  [
    "jitter stretches the backoff by up to 20 %",
    situation({ attempt: 1, chance: 1 }),
    { atMs: NOW + 12 * SECOND },
  ],
  [
    "exit code 0 needs no action",
    situation({}, { kind: "departure", exitCode: 0, signal: null }),
    { action: "rest" },
  ],
  [
    "a stop prevents revival",
    situation({ desiredState: "stopped" }),
    { action: "rest", reason: "stopped by you" },
  ],
  [
    "a pause prevents revival",
    situation({ desiredState: "paused" }),
    { action: "rest", reason: "paused by you" },
  ],
  [
    "a rest prevents revival",
    situation({ desiredState: "resting" }),
    { action: "rest", reason: "put to rest by you" },
  ],
  ["exit code 78 is never retried", situation({}, { exitCode: 78, signal: null }), { action: "tombstone" }],
  [
    "a configured permanent exit code is never retried",
    situation({ limits: { ...DEFAULT_LIMITS, permanentExitCodes: [3] } }, { exitCode: 3, signal: null }),
    { action: "tombstone" },
  ],
  ["mode no never revives", situation({ mode: "no" }), { action: "rest", reason: "revive mode is no" }],
  ["mode ask asks the user", situation({ mode: "ask" }), { action: "ask" }],
  [
    "mode substitute starts the substitute",
    situation({ mode: "substitute" }),
    { action: "substitute", atMs: NOW },
  ],
  ["a stall is revived like a crash", situation({}, { kind: "stall" }), { action: "revive" }],
  [
    "a death more than 24 h ago asks the user",
    situation({ lastSeenMs: NOW - 25 * HOUR }, { atMs: NOW - 25 * HOUR }),
    { action: "ask" },
  ],
  ["a death an hour ago is revived", situation({}, { atMs: NOW - HOUR }), { action: "revive" }],
  [
    "five revivals within an hour end in a tombstone",
    situation({ revivalsMs: recent(5) }),
    { action: "tombstone" },
  ],
  [
    "four revivals within an hour end in no tombstone",
    situation({ revivalsMs: recent(4) }),
    { action: "revive" },
  ],
  [
    "revivals more than an hour ago do not count",
    situation({ revivalsMs: [NOW - 2 * HOUR, ...recent(4)] }),
    { action: "revive" },
  ],
  [
    "an exhausted quota waits for its reset",
    situation({ retries: 1 }, { class: "quota", quotaResetMs: NOW + 3 * HOUR }),
    { action: "revive", atMs: NOW + 3 * HOUR },
  ],
  [
    "a quota that should have been reset is retried with backoff",
    situation({ retries: 2 }, { class: "quota", quotaResetMs: NOW - 1 }),
    { action: "revive", atMs: NOW + 20 * SECOND },
  ],
  [
    "a quota without a reset time is retried after a minute",
    situation({ retries: 1 }, { class: "quota" }),
    { action: "revive", atMs: NOW + MINUTE },
  ],
  [
    "a quota without a reset time is later retried every 15 minutes, for as long as it takes",
    situation({ retries: 100, revivalsMs: recent(9) }, { class: "quota" }),
    { action: "revive", atMs: NOW + 15 * MINUTE },
  ],
  [
    "an overload is retried after 10 s",
    situation({ retries: 1 }, { class: "overload" }),
    { action: "revive", atMs: NOW + 10 * SECOND },
  ],
  [
    "the hundredth overload is retried after 5 minutes, regardless of the limits on crashes",
    situation(
      { retries: 100, chance: 1, revivalsMs: recent(30), recentCrashes: alike(30), attempt: 30 },
      { class: "overload" },
    ),
    { action: "revive", atMs: NOW + 5 * MINUTE, stepBackTo: null },
  ],
  [
    "an overload in mode substitute starts the substitute",
    situation({ mode: "substitute", retries: 1 }, { class: "overload" }),
    { action: "substitute", atMs: NOW + 10 * SECOND },
  ],
  [
    "an overload in mode ask asks the user",
    situation({ mode: "ask" }, { class: "overload" }),
    { action: "ask" },
  ],
  ["a refused key asks the user", situation({}, { class: "auth" }), { action: "ask" }],
  [
    "a refused key in mode no needs no action",
    situation({ mode: "no" }, { class: "auth" }),
    { action: "rest" },
  ],
  [
    "a permanent error that the output reports is never retried",
    situation({}, { class: "permanent" }),
    { action: "tombstone" },
  ],
  [
    "the same crash three times steps back one checkpoint",
    situation({ recentCrashes: alike(3), attempt: 2 }),
    {
      action: "revive",
      stepBackTo: "c3",
      atMs: NOW + 20 * SECOND,
      reason: "the same crash 3 times in a row, stepping back from checkpoint c4 to c3",
    },
  ],
  [
    "three more identical crashes step back one checkpoint further",
    situation({ recentCrashes: alike(3), stepsBack: 1 }),
    { action: "revive", stepBackTo: "c2" },
  ],
  [
    "four identical crashes over a minute step back one checkpoint",
    situation({ recentCrashes: alike(4) }),
    { action: "revive", stepBackTo: "c3" },
  ],
  [
    "the same crash within less than a minute may be an outage: no step back",
    situation({ recentCrashes: alike(4, MINUTE - 1) }),
    { action: "revive", stepBackTo: null },
  ],
  [
    "without an older checkpoint the backoff continues",
    situation({ recentCrashes: alike(3), attempt: 2, olderCheckpoints: [] }),
    {
      action: "revive",
      stepBackTo: null,
      atMs: NOW + 20 * SECOND,
      reason: "backoff of 20 s; the same crash 3 times in a row, and no older checkpoint to step back to",
    },
  ],
  [
    "different crashes do not step back",
    situation({ recentCrashes: crashes(["a", "b", "killed"]) }),
    { action: "revive", stepBackTo: null },
  ],
  [
    "a missing cell asks the user",
    situation({ obstacle: "its cell is gone" }),
    { action: "ask", reason: "its cell is gone" },
  ],
];

describe("the revival policy", () => {
  test.each(ROWS)("%s", (_, given, expected) => {
    expect(decideRevival(given)).toMatchObject(expected);
  });
});

const limits: fc.Arbitrary<PolicyLimits> = fc.record({
  backoffMs: fc.array(fc.nat(600_000), { maxLength: 8 }),
  overloadBackoffMs: fc.array(fc.nat(600_000), { maxLength: 8 }),
  healthyMs: fc.nat(HOUR),
  maxRevivalsPerHour: fc.nat(10),
  maxAgeMs: fc.nat(48 * HOUR),
  alikeCrashesPerStep: fc.integer({ min: 1, max: 5 }),
  stepBackAfterMs: fc.nat(HOUR),
  permanentExitCodes: fc.array(fc.nat(255), { maxLength: 3 }),
});

const any: fc.Arbitrary<Situation> = fc.record({
  mode: fc.constantFrom(...REVIVE_MODES),
  desiredState: fc.constantFrom("running", "stopped", "paused", "resting"),
  end: fc.record({
    kind: fc.constantFrom("departure", "crash", "stall"),
    exitCode: fc.option(fc.nat(255)),
    signal: fc.option(fc.constantFrom("SIGKILL", "SIGTERM")),
    class: fc.option(fc.constantFrom("quota", "overload", "auth", "permanent", "crash")),
    atMs: fc.integer({ min: NOW - 72 * HOUR, max: NOW + HOUR }),
    fingerprint: fc.constantFrom("a", "b"),
    quotaResetMs: fc.option(fc.integer({ min: NOW - HOUR, max: NOW + 24 * HOUR })),
  }),
  lastSeenMs: fc.integer({ min: NOW - 72 * HOUR, max: NOW }),
  revivalsMs: fc.array(fc.integer({ min: NOW - 3 * HOUR, max: NOW }), { maxLength: 12 }),
  attempt: fc.nat(20),
  retries: fc.nat(20),
  crashCheckpoint: fc.option(fc.constant("c4")),
  recentCrashes: fc.array(
    fc.record({
      fingerprint: fc.constantFrom("a", "b"),
      atMs: fc.integer({ min: NOW - 3 * HOUR, max: NOW }),
    }),
    { maxLength: 12 },
  ),
  olderCheckpoints: fc.array(fc.constantFrom("c1", "c2", "c3"), { maxLength: 3 }),
  stepsBack: fc.nat(5),
  unansweredCalls: fc.array(fc.constant("Bash git push"), { maxLength: 2 }),
  hasConversation: fc.boolean(),
  isIdle: fc.boolean(),
  isRejected: fc.boolean(),
  obstacle: fc.option(fc.constant("its cell is gone")),
  nowMs: fc.constant(NOW),
  chance: fc.double({ min: 0, max: 1, noNaN: true }),
  limits,
});

describe("for every situation", () => {
  test("the decision has a reason and is never in the past", () => {
    fc.assert(
      fc.property(any, (given) => {
        const decision = decideRevival(given);
        expect(decision.reason).not.toBe("");
        if ("atMs" in decision) {
          expect(Number.isFinite(decision.atMs)).toBe(true);
          expect(decision.atMs).toBeGreaterThanOrEqual(NOW);
        }
      }),
    );
  });

  test("the user's command always wins", () => {
    fc.assert(
      fc.property(any, fc.constantFrom("stopped", "paused", "resting"), (given, desiredState) => {
        expect(decideRevival({ ...given, desiredState } as Situation).action).toBe("rest");
      }),
    );
  });

  test("no crash is revived beyond the hourly limit, nothing in modes no and ask, or after a departure", () => {
    fc.assert(
      fc.property(any, (given) => {
        const { action } = decideRevival(given);
        if (action !== "revive" && action !== "substitute") return;
        const lastHour = given.revivalsMs.filter((ms) => NOW - ms < HOUR).length;
        const passes = given.end.class === "quota" || given.end.class === "overload";
        if (!passes) expect(lastHour).toBeLessThan(given.limits.maxRevivalsPerHour);
        expect(["yes", "substitute"]).toContain(given.mode);
        expect(given.end.kind).not.toBe("departure");
        expect(given.obstacle).toBeNull();
        expect(given.unansweredCalls).toEqual([]);
      }),
    );
  });

  test("an overload never steps back and is retried within 5 minutes", () => {
    fc.assert(
      fc.property(any, (given) => {
        const decision = decideRevival({ ...given, end: { ...given.end, class: "overload" } });
        if (decision.action === "revive") expect(decision.stepBackTo).toBeNull();
        if ("atMs" in decision) expect(decision.atMs).toBeLessThanOrEqual(NOW + 5 * MINUTE);
      }),
    );
  });

  test("the same situation gives the same decision", () => {
    fc.assert(
      fc.property(any, (given) => {
        expect(decideRevival(given)).toEqual(decideRevival(given));
      }),
    );
  });
});
