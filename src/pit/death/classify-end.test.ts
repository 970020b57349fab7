// What an agent CLI reports about its end, through hooks and transcript, takes precedence over exit code and output.
import { describe, expect, it } from "vitest";
import { createRecord } from "../record/record.ts";
import { grantedValues, toSettings } from "../settings.ts";
import { type AgentReport, classifyEnd, type EndFacts } from "./classify-end.ts";

const NOW = Date.UTC(2026, 10, 16);

const REPORT: AgentReport = {
  isHeadless: true,
  isFinished: false,
  hasTurns: true,
  exitZeroMeansFinished: false,
  failure: null,
  unknownSession: null,
  openCalls: [],
  session: null,
  turn: 3,
};

function classify(
  report: Partial<AgentReport>,
  { exitCode = null, signal = null }: { exitCode?: number | null; signal?: string | null },
  facts: Partial<EndFacts> = {},
) {
  const spec = { mission: "m", agent: "gemini", command: ["gemini"], cwd: null, env: {} };
  const record = {
    ...createRecord(undefined, { ...spec, revive: "yes", substitute: null, stall_seconds: null }, NOW),
    life: { epoch: 1, started_ms: NOW, how: "start", command: [], oom_kills: null, log_bytes: 0 } as const,
  };
  return classifyEnd({
    record,
    settings: toSettings(grantedValues({}, undefined)),
    exit: { epoch: 1, exitCode, signal, endedMs: NOW, leftovers: 0 },
    sameBoot: true,
    orphans: 0,
    lastSignMs: NOW,
    logTail: [],
    search: { words: undefined, skipped: [] },
    report: { ...REPORT, ...report },
    oomKillsNow: null,
    oomLine: undefined,
    diskFull: undefined,
    sleptUntilMs: undefined,
    nowMs: NOW,
    ...facts,
  });
}

describe("an agent CLI has finished", () => {
  it.each<[string, Partial<AgentReport>, { exitCode?: number; signal?: string }]>([
    ["when it said so and exited 0", { isFinished: true }, { exitCode: 0 }],
    ["when it said so and was killed before it exited", { isFinished: true }, { signal: "SIGKILL" }],
    ["by exit code 0, where that is enough", { exitZeroMeansFinished: true }, { exitCode: 0 }],
    ["when the user left it without a prompt", { isHeadless: false, hasTurns: false }, { exitCode: 0 }],
  ])("%s", (_, report, exit) => {
    expect(classify(report, exit)).toMatchObject({ kind: "departure", class: null });
  });

  it.each<[string, Partial<AgentReport>, { exitCode?: number; signal?: string }]>([
    ["by exit code 0 alone, where SIGTERM exits 0", {}, { exitCode: 0 }],
    [
      "when its last turn failed",
      { exitZeroMeansFinished: true, failure: failed("overload") },
      { exitCode: 0 },
    ],
    [
      "when a session in a terminal is killed",
      { isHeadless: false, isFinished: true },
      { signal: "SIGKILL" },
    ],
  ])("not %s", (_, report, exit) => {
    expect(classify(report, exit).kind).toBe("crash");
  });

  it("otherwise the evidence says what is missing", () => {
    expect(classify({}, { exitCode: 0 }).evidence).toMatchObject([{ kind: "unfinished" }]);
  });
});

describe("a failure that the hook reports", () => {
  const words = { class: "quota", line: "429, resets in 2 hours", group: undefined } as const;

  it("takes precedence over the output", () => {
    const end = classify(
      { failure: failed("overload") },
      { exitCode: 1 },
      { search: { words, skipped: [] } },
    );
    expect(end).toMatchObject({ class: "overload", evidence: [{ kind: "overload" }] });
  });

  it("gets the time of the reset from the output, if it names none itself", () => {
    const end = classify({ failure: failed("quota") }, { exitCode: 1 }, { search: { words, skipped: [] } });
    expect(end).toMatchObject({ class: "quota", quota_reset_ms: NOW + 2 * 3_600_000 });
  });

  it("is ignored for a life that a signal ended", () => {
    expect(classify({ failure: failed("auth") }, { signal: "SIGKILL" }).class).toBe("crash");
  });
});

it("an unknown session is named, and the calls that were cut off are kept", () => {
  const call = { id: "1.x", tool: "Bash", summary: "make", command: "make", marked: false, outcome: null };
  const end = classify({ unknownSession: "abc", openCalls: [call] }, { exitCode: 1 });
  expect(end).toMatchObject({ class: "crash", evidence: [{ kind: "unknown-session" }], open_calls: [call] });
});

function failed(kind: "quota" | "overload" | "auth") {
  return { class: kind, message: `API Error (${kind})` };
}
