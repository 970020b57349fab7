// The revival policy: one pure function from what is known about a death to what to do about it (INV-8). Time and chance
// are parameters, so every decision can be replayed.
//
// The rules are in order of precedence: the user's command, what must never be retried, what passes on its own, limits,
// stepping back to older checkpoints, then the backoff.
import { formatCount } from "../../platform/count.ts";
import { unansweredCalls } from "../record/conversation.ts";
import type {
  Decision,
  DesiredState,
  EndKind,
  FailureClass,
  MissionRecord,
  RecordedEnd,
  ReviveMode,
} from "../record/record.ts";

/** How a life ended. */
export interface End {
  readonly kind: EndKind;
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Null for a departure. */
  readonly class: FailureClass | null;
  readonly atMs: number;
  /** Equal for similar deaths: kind, exit code, signal and log tail. */
  readonly fingerprint: string;
  /** When the provider's quota resets; null when that is not known. */
  readonly quotaResetMs: number | null;
}

export interface PolicyLimits {
  readonly backoffMs: readonly number[];
  /** The backoff after an overload, a network failure or a used-up quota. */
  readonly overloadBackoffMs: readonly number[];
  /** A life of this length resets the backoff and the count of similar crashes. */
  readonly healthyMs: number;
  readonly maxRevivalsPerHour: number;
  /** After a death older than this the user is asked. */
  readonly maxAgeMs: number;
  /** This many similar crashes in a row step back one checkpoint … */
  readonly alikeCrashesPerStep: number;
  /** … if they have been repeating for this long: an outage that no pattern reports is no reason to roll files back. */
  readonly stepBackAfterMs: number;
  readonly permanentExitCodes: readonly number[];
}

export const DEFAULT_LIMITS: PolicyLimits = {
  backoffMs: [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000],
  overloadBackoffMs: [10_000, 20_000, 40_000, 80_000, 160_000, 300_000],
  healthyMs: 10 * 60_000,
  maxRevivalsPerHour: 5,
  maxAgeMs: 24 * 3_600_000,
  alikeCrashesPerStep: 3,
  stepBackAfterMs: 60_000,
  permanentExitCodes: [78],
};

export interface Situation {
  readonly mode: ReviveMode;
  readonly desiredState: DesiredState;
  readonly end: End;
  /** When the mission was last started or approved for revival: a death before that is judged by this time. */
  readonly lastSeenMs: number;
  /** Revivals after a crash, oldest first. */
  readonly revivalsMs: readonly number[];
  /** Revivals after a crash since the last healthy life. */
  readonly attempt: number;
  /** Ends by overload or a used-up quota since the last healthy life, with this one. */
  readonly retries: number;
  /** Crashes since the last healthy life and the last step back, this one last. */
  readonly recentCrashes: readonly { readonly fingerprint: string; readonly atMs: number }[];
  /** The checkpoint taken after this death; null when that failed. */
  readonly crashCheckpoint: string | null;
  /** Checkpoints to step back to, newest first, without the one taken after this death. */
  readonly olderCheckpoints: readonly string[];
  /** How many of them were already stepped back to. */
  readonly stepsBack: number;
  readonly nowMs: number;
  /** Tool calls that were cut off and whose outcome only the user can tell, in a few words each. */
  readonly unansweredCalls: readonly string[];
  /** Whether the agent has a conversation, which a person can continue after a permanent error. */
  readonly hasConversation: boolean;
  /** It ended before its conversation advanced: it fails at the start, so older files would not help. */
  readonly isIdle: boolean;
  /**
   * Without progress in the conversation, it exited in front of the user who had just started it: an option it
   * rejects. Or it does not have the session that the user told it to resume.
   */
  readonly isRejected: boolean;
  /** Why the agent cannot be started at all, for example because the cell is gone; null when it can. */
  readonly obstacle: string | null;
  /** A random number between 0 and 1. */
  readonly chance: number;
  readonly limits: PolicyLimits;
}

/** The situation that a record describes, with what only the caller knows. */
export function situationOf(
  record: MissionRecord,
  inputs: Pick<Situation, "mode" | "limits" | "olderCheckpoints" | "obstacle" | "nowMs" | "chance">,
): Situation {
  const end = record.end!;
  return {
    ...inputs,
    desiredState: record.wish,
    end: {
      kind: end.kind,
      exitCode: end.exit_code,
      signal: end.signal,
      class: classOf(end),
      atMs: end.at_ms,
      fingerprint: end.fingerprint,
      quotaResetMs: end.quota_reset_ms,
    },
    lastSeenMs: record.last_seen_ms,
    revivalsMs: record.revivals_ms,
    attempt: record.attempt,
    retries: record.retries,
    crashCheckpoint: record.scene?.checkpoint ?? null,
    recentCrashes: record.deaths
      .map(({ fingerprint, at_ms: atMs }) => ({ fingerprint, atMs }))
      .filter(({ atMs }) => atMs > (record.stepped_back_ms ?? Number.NEGATIVE_INFINITY)),
    stepsBack: record.steps_back,
    unansweredCalls: unansweredCalls(end.open_calls).map(({ tool, summary }) => `${tool} ${summary}`),
    hasConversation: record.adapter !== null,
    isIdle: isIdle(record),
    isRejected:
      isIdle(record) &&
      end.exit_code !== null &&
      record.life?.how === "start" &&
      (record.life.foreground != null ||
        record.terminal != null ||
        end.evidence.some(({ kind }) => kind === "unknown-session")),
  };
}

/** Whether the agent has a conversation that did not advance in this life. */
function isIdle({ end, life }: MissionRecord): boolean {
  return end?.turn !== undefined && (end.turn ?? 0) <= (life?.conversation?.turn ?? 0);
}

/** Records of older versions have no class. */
function classOf({ kind, class: known, quota_reset_ms: resetMs }: RecordedEnd): FailureClass | null {
  if (kind === "departure") return null;
  return known ?? (resetMs === null ? "crash" : "quota");
}

const HOUR_MS = 3_600_000;

export function decideRevival(situation: Situation): Decision {
  const { end, limits, nowMs } = situation;
  if (situation.desiredState !== "running") return rest(BY_USER[situation.desiredState]);
  if (end.kind === "departure") return rest(end.exitCode === 0 ? "exited 0" : "it had finished");
  if (end.exitCode !== null && limits.permanentExitCodes.includes(end.exitCode)) {
    return {
      action: "tombstone",
      reason: `exit code ${end.exitCode} is configured as permanent, so a retry cannot help`,
    };
  }
  if (end.class === "permanent" && !situation.hasConversation)
    return { action: "tombstone", reason: "its output reports a permanent error, so a retry cannot help" };
  if (situation.mode === "no") return rest("revive mode is no");
  if (situation.obstacle !== null) return { action: "ask", reason: situation.obstacle };
  const ageMs = nowMs - Math.max(end.atMs, situation.lastSeenMs);
  if (ageMs > limits.maxAgeMs) {
    return {
      action: "ask",
      reason: `it died ${hours(ageMs)} ago; after ${hours(limits.maxAgeMs)} a revival needs your approval`,
    };
  }
  if (situation.unansweredCalls.length > 0)
    return {
      action: "ask",
      reason: `cut off, outcome unknown: ${situation.unansweredCalls.join("; ")}`,
    };
  if (end.class === "permanent")
    return { action: "ask", reason: "it reports an error that a retry cannot fix: see its output" };
  if (end.class === "auth")
    return { action: "ask", reason: "authentication failed: check its login or key, then revive it" };
  if (situation.mode === "ask") return { action: "ask", reason: "revive mode is ask" };
  if (end.class === "quota" || end.class === "overload") return retryLater(situation);
  if (situation.isRejected)
    return { action: "ask", reason: "it ended before its conversation continued: see its output" };
  const lastHour = situation.revivalsMs.filter((ms) => nowMs - ms < HOUR_MS).length;
  if (lastHour >= limits.maxRevivalsPerHour) {
    return {
      action: "tombstone",
      reason: `${formatCount(lastHour, "revival")} within an hour, the limit is ${limits.maxRevivalsPerHour}`,
    };
  }
  const atMs = nowMs + backoff(limits.backoffMs, situation.attempt, situation.chance);
  if (situation.mode === "substitute")
    return { action: "substitute", atMs, reason: "revive mode is substitute" };
  return stepBackOrRetry(situation, atMs);
}

/** Overloads and used-up quotas pass on their own: retried as long as it takes, without the limits on crashes. */
function retryLater({ end, mode, limits, retries, nowMs, chance }: Situation): Decision {
  if (end.class === "quota" && end.quotaResetMs === null) {
    const quotaWaitMs = backoff(UNKNOWN_RESET_MS, retries - 1, chance);
    const reason = `quota exhausted, reset time unknown: retry ${retries} after ${seconds(quotaWaitMs)}`;
    return { action: "revive", atMs: nowMs + quotaWaitMs, stepBackTo: null, reason };
  }
  const waitMs = Math.min(backoff(limits.overloadBackoffMs, retries - 1, chance), MAX_OVERLOAD_WAIT_MS);
  if (end.class === "quota") {
    // The backoff limits how often an agent is started that names a reset in the past.
    const atMs = Math.max(end.quotaResetMs ?? 0, nowMs + waitMs);
    return { action: "revive", atMs, stepBackTo: null, reason: "quota exhausted, waiting for its reset" };
  }
  const atMs = nowMs + waitMs;
  const reason = `provider overloaded or unreachable, retry ${retries} after ${seconds(waitMs)}`;
  return mode === "substitute"
    ? { action: "substitute", atMs, reason }
    : { action: "revive", atMs, stepBackTo: null, reason };
}

function stepBackOrRetry(situation: Situation, atMs: number): Decision {
  const { limits, nowMs, crashCheckpoint } = situation;
  const waitMs = atMs - nowMs;
  const backoffReason = waitMs === 0 ? "no backoff" : `backoff of ${seconds(waitMs)}`;
  const { count, sinceMs } = countSimilarCrashes(situation.recentCrashes);
  const isShort = nowMs - sinceMs < limits.stepBackAfterMs && !situation.isIdle;
  if (count < limits.alikeCrashesPerStep || isShort)
    return { action: "revive", atMs, stepBackTo: null, reason: backoffReason };
  const again = `the same crash ${count} times in a row`;
  if (situation.isIdle)
    return { action: "ask", reason: `${again}, without progress in the conversation: see its output` };
  const target = situation.olderCheckpoints[situation.stepsBack];
  if (target === undefined)
    return {
      action: "revive",
      atMs,
      stepBackTo: null,
      reason: `${backoffReason}; ${again}, and no older checkpoint to step back to`,
    };
  const from = crashCheckpoint === null ? "" : ` from checkpoint ${crashCheckpoint}`;
  return {
    action: "revive",
    atMs,
    stepBackTo: target,
    reason: `${again}, stepping back${from} to ${target}`,
  };
}

/** Why nothing is revived, by what the user asked for. */
export const BY_USER: Readonly<Record<Exclude<DesiredState, "running">, string>> = {
  stopped: "stopped by you",
  paused: "paused by you",
  resting: "put to rest by you",
};

function rest(reason: string): Decision {
  return { action: "rest", reason };
}

/** Share by which a wait is stretched or shortened at random, so that agents of one outage do not return together. */
const JITTER = 0.2;

/** Retries after an overload are never further apart. */
const MAX_OVERLOAD_WAIT_MS = 300_000;

/** Waits when no reset time is known: most limits are per minute, and limits of an account usually name their reset. */
const UNKNOWN_RESET_MS = [60_000, 120_000, 300_000, 900_000];

function backoff(stepsMs: readonly number[], attempt: number, chance: number): number {
  const step = stepsMs[Math.min(Math.max(attempt, 0), stepsMs.length - 1)] ?? 0;
  return Math.round(step * (1 + JITTER * (2 * chance - 1)));
}

/** How many of the latest crashes are similar, and when the first of them was. */
function countSimilarCrashes(crashes: Situation["recentCrashes"]): {
  readonly count: number;
  readonly sinceMs: number;
} {
  const other = crashes.findLastIndex(({ fingerprint }) => fingerprint !== crashes.at(-1)!.fingerprint);
  return { count: crashes.length - 1 - other, sinceMs: crashes[other + 1]?.atMs ?? 0 };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function hours(ms: number): string {
  return `${Math.round(ms / HOUR_MS)} h`;
}
