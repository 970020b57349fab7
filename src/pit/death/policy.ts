// The revival policy: one pure function from what is known about a death to what to do about it (INV-8). Time and chance
// are parameters, so every decision can be replayed.
//
// The rules are in order of precedence: the user's command, what must never be retried, limits, stepping back to older
// checkpoints, then the backoff.
import type { Decision, DesiredState, EndKind, MissionRecord, ReviveMode } from "../record/record.ts";

/** How a life ended. */
export interface End {
  readonly kind: EndKind;
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly atMs: number;
  /** Equal for similar deaths: kind, exit code, signal and log tail. */
  readonly fingerprint: string;
  /** When the provider's quota resets. */
  readonly quotaResetMs: number | null;
}

export interface PolicyLimits {
  readonly backoffMs: readonly number[];
  /** A life of this length resets the backoff and the count of similar crashes. */
  readonly healthyMs: number;
  readonly maxRevivalsPerHour: number;
  /** After a death older than this the user is asked. */
  readonly maxAgeMs: number;
  /** Every nth similar crash in a row steps back one checkpoint. */
  readonly alikeCrashesPerStep: number;
  readonly permanentExitCodes: readonly number[];
}

export const DEFAULT_LIMITS: PolicyLimits = {
  backoffMs: [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000],
  healthyMs: 10 * 60_000,
  maxRevivalsPerHour: 5,
  maxAgeMs: 24 * 3_600_000,
  alikeCrashesPerStep: 3,
  permanentExitCodes: [78],
};

export interface Situation {
  readonly mode: ReviveMode;
  readonly desiredState: DesiredState;
  readonly end: End;
  /** When the mission was last started or approved for revival: a death before that is judged by this time. */
  readonly lastSeenMs: number;
  /** Oldest first. */
  readonly revivalsMs: readonly number[];
  /** Revivals since the last healthy life. */
  readonly attempt: number;
  /** Fingerprints of the deaths since the last healthy life, this one last. */
  readonly recentFingerprints: readonly string[];
  /** Checkpoints to step back to, newest first, without the one taken after this death. */
  readonly olderCheckpoints: readonly string[];
  /** How many of them were already stepped back to. */
  readonly stepsBack: number;
  readonly nowMs: number;
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
      atMs: end.at_ms,
      fingerprint: end.fingerprint,
      quotaResetMs: end.quota_reset_ms,
    },
    lastSeenMs: record.last_seen_ms,
    revivalsMs: record.revivals_ms,
    attempt: record.attempt,
    recentFingerprints: record.deaths.map(({ fingerprint }) => fingerprint),
    stepsBack: record.steps_back,
  };
}

const HOUR_MS = 3_600_000;

export function decideRevival(situation: Situation): Decision {
  const { end, limits, nowMs } = situation;
  if (situation.desiredState !== "running") return rest(BY_USER[situation.desiredState]);
  if (end.kind === "departure") return rest("exited 0");
  if (end.exitCode !== null && limits.permanentExitCodes.includes(end.exitCode)) {
    return {
      action: "tombstone",
      reason: `exit code ${end.exitCode} is configured as permanent, so a retry cannot help`,
    };
  }
  if (situation.mode === "no") return rest("revive mode is no");
  if (situation.obstacle !== null) return { action: "ask", reason: situation.obstacle };
  const ageMs = nowMs - Math.max(end.atMs, situation.lastSeenMs);
  if (ageMs > limits.maxAgeMs) {
    return {
      action: "ask",
      reason: `it died ${hours(ageMs)} ago; after ${hours(limits.maxAgeMs)} a revival needs your approval`,
    };
  }
  if (situation.mode === "ask") return { action: "ask", reason: "revive mode is ask" };
  const lastHour = situation.revivalsMs.filter((ms) => nowMs - ms < HOUR_MS).length;
  if (lastHour >= limits.maxRevivalsPerHour) {
    return {
      action: "tombstone",
      reason: `${lastHour} revivals within an hour, the limit is ${limits.maxRevivalsPerHour}`,
    };
  }
  if (end.quotaResetMs !== null && end.quotaResetMs > nowMs) {
    return {
      action: "revive",
      atMs: end.quotaResetMs,
      stepBackTo: null,
      reason: "quota exhausted, waiting for its reset",
    };
  }
  const atMs = nowMs + backoff(situation);
  if (situation.mode === "substitute")
    return { action: "substitute", atMs, reason: "revive mode is substitute" };
  return stepBackOrRetry(situation, atMs);
}

function stepBackOrRetry(situation: Situation, atMs: number): Decision {
  const { limits, nowMs } = situation;
  const alike = alikeInARow(situation.recentFingerprints);
  if (alike >= limits.alikeCrashesPerStep && alike % limits.alikeCrashesPerStep === 0) {
    const target = situation.olderCheckpoints[situation.stepsBack];
    if (target === undefined) {
      return {
        action: "tombstone",
        reason: `the same crash ${alike} times in a row, and no older checkpoint left to step back to`,
      };
    }
    return {
      action: "revive",
      atMs,
      stepBackTo: target,
      reason: `the same crash ${alike} times in a row, stepping back one checkpoint`,
    };
  }
  const waitMs = atMs - nowMs;
  return {
    action: "revive",
    atMs,
    stepBackTo: null,
    reason: waitMs === 0 ? "no backoff" : `backoff of ${Math.round(waitMs / 1000)} s`,
  };
}

const BY_USER: Readonly<Record<Exclude<DesiredState, "running">, string>> = {
  stopped: "stopped by you",
  paused: "paused by you",
  resting: "put to rest by you",
};

function rest(reason: string): Decision {
  return { action: "rest", reason };
}

/** Share by which a wait is stretched or shortened at random, so that agents of one outage do not return together. */
const JITTER = 0.2;

function backoff({ attempt, limits, chance }: Situation): number {
  const step = limits.backoffMs[Math.min(attempt, limits.backoffMs.length - 1)] ?? 0;
  return Math.round(step * (1 + JITTER * (2 * chance - 1)));
}

function alikeInARow(fingerprints: readonly string[]): number {
  const last = fingerprints.at(-1);
  let count = 0;
  while (count < fingerprints.length && fingerprints[fingerprints.length - 1 - count] === last) count += 1;
  return count;
}

function hours(ms: number): string {
  return `${Math.round(ms / HOUR_MS)} h`;
}
