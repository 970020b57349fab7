// Classifies how a life ended: a pure function from the facts that collect-facts.ts gathers to an end with its evidence.
// What the kernel reports comes first. Output is only considered if the agent itself exited with a failure.

import { createHash } from "node:crypto";
import type { PatternClass } from "../../agents/adapter.ts";
import type { Exit } from "../../cell/life.ts";
import { formatCount } from "../../platform/count.ts";
import type { OpenCall } from "../record/conversation.ts";
import type { Evidence, FailureClass, MissionRecord, RecordedEnd } from "../record/record.ts";
import type { PitSettings } from "../settings.ts";
import { lastLogLines } from "./log-tail.ts";
import type { Pattern, Search, Words } from "./match-patterns.ts";
import { parseReset, quotaResetMs, retryAfterMs } from "./quota.ts";

/** What the hooks and the transcript of an agent CLI say about the end of its life. */
export interface AgentReport {
  /** Runs without a terminal and exits when it is done. */
  readonly isHeadless: boolean;
  /** It reported in this life that it is done, and nothing has started since. */
  readonly isFinished: boolean;
  /** False: it was never given anything to do. */
  readonly hasTurns: boolean;
  /** Whether exit code 0 alone means that it is done: false for agents that exit 0 on SIGTERM. */
  readonly exitZeroMeansFinished: boolean;
  /** The last turn failed, by its own hook. */
  readonly failure: { readonly class: PatternClass; readonly message: string } | null;
  /** The session that it was told to resume and does not have. */
  readonly unknownSession: string | null;
  readonly openCalls: readonly OpenCall[];
  /** Null when neither a hook nor a transcript names it. */
  readonly session: string | null;
  /** Where the conversation was; null when there is none. */
  readonly turn: number | null;
}

export interface EndFacts {
  readonly record: MissionRecord;
  readonly settings: PitSettings;
  /** Undefined when the keeper was killed and wrote none. */
  readonly exit: Exit | undefined;
  /** Whether the life began in this boot; undefined when its processes were never recorded. */
  readonly sameBoot: boolean | undefined;
  /** Processes that outlived their keeper and were killed. */
  readonly orphans: number;
  /** Newest file time, for an end whose time was not recorded. */
  readonly lastSignMs: number;
  readonly logTail: readonly string[];
  /** What the agent's patterns found in the tail; nothing unless the agent itself exited with a failure. */
  readonly search: Pick<Search, "words" | "skipped">;
  /** Undefined for a command without an adapter: its exit code is all there is. */
  readonly report?: AgentReport | undefined;
  readonly oomKillsNow: number | null;
  readonly oomLine: string | undefined;
  /** What the kernel says about free space now. */
  readonly diskFull: string | undefined;
  /** When the host last woke from sleep during this life. */
  readonly sleptUntilMs: number | undefined;
  readonly nowMs: number;
}

/** A death this soon after the host woke is probably caused by the sleep. */
const AFTER_SLEEP_MS = 60_000;
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const TAIL_LINES_KEPT = 10;
/** Lines of the log in a fingerprint, so that two crashes with different messages differ. */
const FINGERPRINT_LINES = 3;

/** Only then does its output explain the end: all other lives were ended by a signal, a stall or the user. */
export function exitedWithFailure(record: MissionRecord, exit: Exit | undefined): boolean {
  const killedByPit = record.stalled !== null && record.stalled.epoch === record.life?.epoch;
  return (
    exit !== undefined &&
    exit.signal === null &&
    exit.exitCode !== 0 &&
    record.wish === "running" &&
    !killedByPit
  );
}

export function classifyEnd(facts: EndFacts): RecordedEnd {
  const { record, exit, nowMs } = facts;
  const epoch = record.life?.epoch ?? 0;
  const stalled = record.stalled?.epoch === epoch ? record.stalled : undefined;
  const exitCode = exit?.exitCode ?? null;
  const signal = exit?.signal ?? null;
  const kind = stalled ? "stall" : hasFinished(exitCode, facts.report) ? "departure" : "crash";
  const atMs = exit?.endedMs ?? Math.min(Math.max(facts.lastSignMs, record.life?.started_ms ?? 0), nowMs);
  const words = kind === "crash" && exit?.signal === null ? findWords(facts) : undefined;
  const failure = kind === "departure" ? null : classify(facts, words);
  const evidence = [
    ...userEvidence(record),
    ...(stalled === undefined ? [] : [{ kind: "stall" as const, says: stalled.reason }]),
    ...keeperEvidence(facts),
    ...exitCodeEvidence(facts),
    ...wordEvidence(facts, words),
    ...(kind === "crash" ? reportEvidence(facts) : []),
    ...diskEvidence(facts),
    ...sleepEvidence(facts, atMs),
    ...leftoverEvidence(facts),
  ];
  const cause = exit === undefined ? (evidence[0]?.kind ?? "vanished") : "";
  return {
    epoch,
    kind,
    exit_code: exitCode,
    signal,
    class: failure,
    at_ms: atMs,
    noticed_ms: nowMs,
    fingerprint: fingerprint(
      [kind, String(exitCode), String(signal), cause],
      lastLogLines(facts.logTail, FINGERPRINT_LINES),
    ),
    quota_reset_ms: failure === "quota" && words !== undefined ? resetMs(words, facts) : null,
    evidence,
    last_words: lastLogLines(facts.logTail, TAIL_LINES_KEPT),
    leftovers: (exit?.leftovers ?? 0) + facts.orphans,
    ...(facts.report === undefined ? {} : { open_calls: facts.report.openCalls, turn: facts.report.turn }),
  };
}

/** The reset time, in the matching line or in one near it. */
function resetMs(words: Words, { logTail, nowMs }: EndFacts): number | null {
  return quotaResetMs(words, nowMs) ?? retryAfterMs(logTail, nowMs);
}

/** An agent CLI has finished when it reports so; any other command when it exits 0. */
function hasFinished(exitCode: number | null, report: AgentReport | undefined): boolean {
  if (report === undefined) return exitCode === 0;
  if (report.isHeadless && report.isFinished) return true;
  if (exitCode !== 0 || report.failure !== null) return false;
  return report.exitZeroMeansFinished || report.isFinished || (!report.isHeadless && !report.hasTurns);
}

/** What the agent's own hook says comes before its output, which may only add the time of a reset. */
function findWords({ record, exit, search, report, nowMs }: EndFacts): Words | undefined {
  const found = exitedWithFailure(record, exit) ? search.words : undefined;
  const reported = record.wish === "running" ? report?.failure : undefined;
  if (reported == null) return found;
  const namesReset = parseReset(reported.message, nowMs) !== undefined;
  if (found?.class === reported.class && !namesReset) return found;
  return { class: reported.class, line: reported.message, group: undefined };
}

function classify({ exit, settings }: EndFacts, words: Words | undefined): FailureClass {
  const code = exit?.exitCode ?? null;
  if (code !== null && settings.limits.permanentExitCodes.includes(code)) return "permanent";
  return words?.class ?? "crash";
}

const USER_COMMANDS = { stopped: "stop", paused: "pause", resting: "rest" } as const;

function userEvidence({ wish }: MissionRecord): Evidence[] {
  return wish === "running" ? [] : [{ kind: "human", says: `you ran lazarus ${USER_COMMANDS[wish]}` }];
}

/** The keeper wrote no exit, or the kernel may have killed the agent. */
function keeperEvidence({ record, exit, sameBoot, oomKillsNow, oomLine }: EndFacts): Evidence[] {
  const evidence: Evidence[] = [];
  if (exit === undefined) {
    if (sameBoot === false)
      evidence.push({ kind: "reboot", says: "the machine rebooted, which ended every process" });
    else if (sameBoot === undefined)
      evidence.push({ kind: "never-started", says: "its starter was killed before the agent ran" });
    else
      evidence.push({
        kind: "keeper-vanished",
        says: "its keeper was killed, so the exit status is unknown",
      });
  }
  if (exit !== undefined && exit.signal !== "SIGKILL") return evidence;
  const before = record.life?.oom_kills ?? null;
  const counted = before !== null && oomKillsNow !== null && oomKillsNow > before;
  if (oomLine !== undefined) evidence.push({ kind: "oom", says: `kernel log: ${oomLine}` });
  else if (counted && exit?.signal === "SIGKILL")
    evidence.push({ kind: "oom", says: "the kernel's OOM killer was active during this life" });
  return evidence;
}

function exitCodeEvidence({ exit, settings }: EndFacts): Evidence[] {
  const code = exit?.exitCode ?? null;
  if (code === null) return [];
  const evidence: Evidence[] = [];
  if (code === NOT_FOUND)
    evidence.push({ kind: "not-found", says: "exit code 127: the command, or one it calls, was not found" });
  if (code === NOT_EXECUTABLE)
    evidence.push({ kind: "not-found", says: "exit code 126: the command is not executable" });
  if (settings.limits.permanentExitCodes.includes(code))
    evidence.push({ kind: "permanent", says: `exit code ${code} is configured as permanent` });
  return evidence;
}

const CLASSES = {
  quota: "quota exhausted",
  overload: "provider overloaded or unreachable",
  auth: "authentication failed",
  permanent: "a permanent error",
} as const;

function wordEvidence({ search }: EndFacts, words: Words | undefined): Evidence[] {
  const found =
    words === undefined
      ? []
      : [{ kind: words.class, says: `${CLASSES[words.class]}: ${words.line.trim().slice(0, 200)}` }];
  return [
    ...found,
    ...search.skipped.map((pattern) => ({ kind: "pattern" as const, says: describeSkipped(pattern) })),
  ];
}

function reportEvidence({ exit, report }: EndFacts): Evidence[] {
  if (report === undefined) return [];
  if (report.unknownSession !== null)
    return [
      { kind: "unknown-session", says: `the agent does not have the session ${report.unknownSession}` },
    ];
  if (exit?.exitCode !== 0 || report.failure !== null) return [];
  return [{ kind: "unfinished", says: "it exited 0 without having finished its turn" }];
}

/** For evidence and the pit's log. */
export function describeSkipped(pattern: Pattern): string {
  return `the ${pattern.class} pattern ${pattern.pattern} takes too long and is skipped; simplify pit.${pattern.class}_patterns`;
}

function diskEvidence({ exit, diskFull }: EndFacts): Evidence[] {
  if (exit?.exitCode === 0 || diskFull === undefined) return [];
  return [{ kind: "disk-full", says: `disk full: ${diskFull}` }];
}

function sleepEvidence({ sleptUntilMs }: EndFacts, atMs: number): Evidence[] {
  if (sleptUntilMs === undefined || Math.abs(atMs - sleptUntilMs) >= AFTER_SLEEP_MS) return [];
  return [{ kind: "host-sleep", says: "the machine had just woken from sleep" }];
}

function leftoverEvidence({ exit, orphans }: EndFacts): Evidence[] {
  const evidence: Evidence[] = [];
  const left = exit?.leftovers ?? 0;
  if (left > 0)
    evidence.push({
      kind: "leftovers",
      says: `killed ${formatCount(left, "process", "processes")} that it left behind`,
    });
  if (orphans > 0)
    evidence.push({
      kind: "leftovers",
      says: `killed ${formatCount(orphans, "process", "processes")} that outlived the keeper`,
    });
  return evidence;
}

/** Equal for similar deaths: numbers, addresses and times in the log's lines do not count. */
function fingerprint(facts: readonly string[], logTail: readonly string[]): string {
  const lines = logTail
    .map((line) => line.replaceAll(/0x[0-9a-f]+|[0-9a-f]{8,}|\d+/gi, "#").trim())
    .filter((line) => line !== "");
  return createHash("sha256")
    .update([...facts, ...lines].join("\n"))
    .digest("hex")
    .slice(0, 16);
}
