// The whole output of `why` for each kind of end, from simulated facts.

import { describe, expect, test } from "vitest";
import type { PatternClass } from "../../src/agents/adapter.ts";
import { classifyEnd, type EndFacts } from "../../src/pit/death/classify-end.ts";
import { decideRevival, situationOf } from "../../src/pit/death/policy.ts";
import { explain, renderWhy } from "../../src/pit/death/why.ts";
import { stateOf } from "../../src/pit/describe.ts";
import {
  beginLife,
  createRecord,
  endLife,
  type MissionRecord,
  type RecordedEnd,
  type ReviveMode,
  setCheckpoint,
  setDecision,
  setDesiredState,
} from "../../src/pit/record/record.ts";
import { grantedValues, toSettings } from "../../src/pit/settings.ts";
import type { MissionView } from "../../src/pit/view.ts";

const START = Date.UTC(2026, 10, 16, 1, 0, 0);
const MINUTE = 60_000;
const settings = toSettings(grantedValues({}, undefined));

interface Death {
  readonly facts?: Partial<EndFacts>;
  readonly status?: { exitCode: number | null; signal: string | null };
  readonly words?: readonly string[];
  /** What the last of the words reports, by a pattern. */
  readonly class?: PatternClass;
  readonly mode?: ReviveMode;
  readonly stopped?: boolean;
  readonly stall?: string;
  readonly gone?: boolean;
  readonly saved?: boolean;
  readonly earlierRevivals?: number;
  /** No pit has handled it. */
  readonly unhandled?: boolean;
}

function why(death: Death): string {
  const endedMs = START + 5 * MINUTE;
  const nowMs = endedMs + 2000;
  let record = beginLife(
    createRecord(
      undefined,
      {
        mission: "tidy-inbox",
        agent: "claude",
        command: ["claude"],
        cwd: null,
        env: {},
        revive: death.mode ?? "yes",
        substitute: null,
        stall_seconds: null,
      },
      START,
    ),
    { epoch: 3, started_ms: START, how: "start", command: ["claude"], oom_kills: 0, log_bytes: 0 },
  );
  if (death.stopped) record = setDesiredState(record, "stopped", endedMs);
  if (death.stall) record = { ...record, stalled: { epoch: 3, at_ms: endedMs, reason: death.stall } };
  if (death.earlierRevivals)
    record = {
      ...record,
      revivals_ms: Array.from({ length: death.earlierRevivals }, (_, n) => START - n * MINUTE),
    };
  const end = classifyEnd({
    record,
    settings,
    exit: death.status && { epoch: 3, ...death.status, endedMs, leftovers: 0 },
    sameBoot: true,
    orphans: 0,
    lastSignMs: endedMs,
    logTail: death.words ?? [],
    search: {
      words: death.class && { class: death.class, line: death.words!.at(-1)!, group: undefined },
      skipped: [],
    },
    oomKillsNow: 0,
    oomLine: undefined,
    diskFull: undefined,
    sleptUntilMs: undefined,
    nowMs,
    ...death.facts,
  });
  if (death.unhandled) return render(death, record, nowMs, end);
  record = endLife(record, end, settings.limits.healthyMs);
  record = setCheckpoint(
    record,
    death.gone
      ? { epoch: 3, checkpoint: null, error: "the cell is gone", waived: "cell-gone" }
      : { epoch: 3, checkpoint: "20261116-010500-abc123", error: null },
  );
  const decision = decideRevival(
    situationOf(record, {
      mode: death.mode ?? "yes",
      limits: settings.limits,
      olderCheckpoints: [],
      obstacle: death.gone ? "its cell /m/tidy-inbox is gone" : null,
      nowMs,
      chance: 0.5,
    }),
  );
  return render(death, setDecision(record, decision, nowMs), nowMs);
}

function render(death: Death, record: MissionRecord, nowMs: number, preview?: RecordedEnd): string {
  const view: MissionView = {
    mission_id: "tidy-inbox",
    root: "/m/tidy-inbox",
    worktree: "/m/tidy-inbox/worktree",
    worktree_state: "in-cell",
    unprotected: null,
    silent_hooks: false,
    waits_for_user: false,
    live: null,
    cell: death.gone ? "gone" : "healthy",
    state: stateOf(record, false),
    agent: "claude",
    command: ["claude"],
    pid: null,
    epoch: 3,
    started_ms: START,
    last_activity_ms: nowMs - 2000,
    last_progress_ms: null,
    last_checkpoint: death.saved ? { id: "20261118-000000-aaaaaa", created_ms: 0, reason: "baseline" } : null,
    done_since: [],
    revivals_today: death.earlierRevivals ?? 0,
    revive: null,
    wish: record.wish,
    next_action: "",
    record,
    problem: null,
  };
  return renderWhy(explain(view, { nowMs, pitRuns: preview === undefined, preview }));
}

const KILLED = { exitCode: null, signal: "SIGKILL" };
const FAILED = { exitCode: 1, signal: null };

const DEATHS: [kind: string, death: Death][] = [
  ["killed by SIGKILL", { status: KILLED }],
  [
    "out of memory",
    { status: KILLED, facts: { oomLine: "Out of memory: Killed process 4711 (claude) total-vm:8123456kB" } },
  ],
  [
    "an error of the agent",
    { status: FAILED, words: ["Traceback (most recent call last):", "KeyError: 'inbox'"], mode: "ask" },
  ],
  [
    "an exhausted quota",
    { status: FAILED, words: ["Claude AI usage limit reached, resets 3am (UTC)"], class: "quota" },
  ],
  [
    "an overloaded provider",
    { status: FAILED, words: ["API Error: 529 Overloaded."], class: "overload", earlierRevivals: 9 },
  ],
  ["a refused key", { status: FAILED, words: ["Not logged in"], class: "auth" }],
  [
    "a pattern that takes too long",
    {
      status: FAILED,
      facts: { search: { words: undefined, skipped: [{ class: "quota", pattern: "(a+)+$" }] } },
    },
  ],
  ["a full disk", { status: FAILED, facts: { diskFull: "less than 1 MiB free at /m/tidy-inbox" } }],
  [
    "a signal while the disk is full",
    { status: KILLED, facts: { diskFull: "less than 1 MiB free at /m/tidy-inbox" } },
  ],
  [
    "a signal after lines about a quota and a full disk",
    { status: KILLED, words: ["write: ENOSPC", "usage limit reached"], class: "quota" },
  ],
  [
    "a missing command",
    { status: { exitCode: 127, signal: null }, words: ["sh: claude: not found"], mode: "ask" },
  ],
  ["a permanent error", { status: { exitCode: 78, signal: null } }],
  ["a reboot", { facts: { sameBoot: false } }],
  ["a killed keeper", { facts: { orphans: 2 } }],
  [
    "a stall",
    {
      status: { exitCode: null, signal: "SIGTERM" },
      stall: "no output, write, CPU use or heartbeat for 901 s (limit 900 s)",
    },
  ],
  ["a crash loop", { status: FAILED, earlierRevivals: 5 }],
  ["a stop by the user", { status: { exitCode: null, signal: "SIGTERM" }, stopped: true }],
  ["a clean exit", { status: { exitCode: 0, signal: null } }],
  ["waking from sleep", { status: FAILED, facts: { sleptUntilMs: START + 5 * MINUTE - 3000 } }],
  ["a deleted cell", { status: FAILED, gone: true, saved: true }],
  ["a deleted cell without a checkpoint", { status: FAILED, gone: true }],
  [
    "an end that is not handled yet",
    { status: { exitCode: 3, signal: null }, words: ["cannot connect"], unhandled: true },
  ],
];

describe("why", () => {
  test.each(DEATHS)("%s", (_, death) => {
    expect(why(death)).toMatchSnapshot();
  });
});
