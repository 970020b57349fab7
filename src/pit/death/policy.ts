// The revival policy: one pure function from what is known of a death to what to do about it (INV-8). Time and chance
// are parameters, so every decision can be replayed. Nothing here starts, stops or reads anything.
//
// Read from the top, the rules are the order of precedence: a human's word first, then what must never be retried, then
// limits, then the ladder back to older checkpoints, then when to try again.

export const REVIVE_MODES = ["yes", "no", "ask", "substitute"] as const;

export type ReviveMode = (typeof REVIVE_MODES)[number];

export const WISHES = ["running", "stopped", "paused", "resting"] as const;

/** What a human last asked for. Everything but `running` is a latch that survives reboots. */
export type Wish = (typeof WISHES)[number];

/** How a life ended. */
export interface End {
  readonly kind: "departure" | "crash" | "stall";
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly atMs: number;
  /** Equal for deaths that look alike: kind, code, signal and the last words. */
  readonly fingerprint: string;
  /** The provider's quota is used up until then. */
  readonly quotaResetMs: number | null;
}

/** Limits; a mission's own override the pit's, which override these. */
export interface PolicyLimits {
  readonly backoffMs: readonly number[];
  /** Share by which a wait is stretched or shortened at random. */
  readonly jitter: number;
  /** A life of this length forgives earlier backoff and earlier alike crashes. */
  readonly healthyMs: number;
  readonly maxRevivalsPerHour: number;
  /** A death noticed later than this is not acted upon: the world has moved on. */
  readonly maxAgeMs: number;
  /** So many alike crashes in a row step back one checkpoint. */
  readonly alikeCrashesPerStep: number;
  readonly permanentExitCodes: readonly number[];
}

export const DEFAULT_LIMITS: PolicyLimits = {
  backoffMs: [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000],
  jitter: 0.2,
  healthyMs: 10 * 60_000,
  maxRevivalsPerHour: 5,
  maxAgeMs: 24 * 3_600_000,
  alikeCrashesPerStep: 3,
  permanentExitCodes: [78],
};

export interface Situation {
  readonly mode: ReviveMode;
  readonly wish: Wish;
  readonly end: End;
  /** When the life that ended began. */
  readonly startedMs: number;
  /** When the pit last knew the mission to be alive and wanted: a later look at the same death is judged by it. */
  readonly lastSeenMs: number;
  /** Times of revivals so far, oldest first. */
  readonly revivalsMs: readonly number[];
  /** Revivals since the last healthy life. */
  readonly attempt: number;
  /** Fingerprints of the deaths since the last healthy life, this one last. */
  readonly recentFingerprints: readonly string[];
  /** Checkpoints that could be stepped back to, newest first; the scene of this death is not among them. */
  readonly olderCheckpoints: readonly string[];
  /** How many of them have been stepped back already. */
  readonly stepsBack: number;
  readonly nowMs: number;
  /** Why nothing can be started however much it is wanted: the cell is gone. Null when nothing stands in the way. */
  readonly obstacle: string | null;
  /** Between 0 and 1, drawn by the caller. */
  readonly chance: number;
  readonly limits: PolicyLimits;
}

export type Decision =
  | { readonly action: "rest"; readonly reason: string }
  | { readonly action: "ask"; readonly reason: string }
  | {
      readonly action: "revive";
      readonly atMs: number;
      readonly stepBackTo: string | null;
      readonly reason: string;
    }
  | { readonly action: "substitute"; readonly atMs: number; readonly reason: string }
  | { readonly action: "tombstone"; readonly reason: string };

const HOUR_MS = 3_600_000;

export function decideRevival(situation: Situation): Decision {
  const { end, limits, nowMs } = situation;
  if (situation.wish !== "running") return rest(`a human said ${WORDS[situation.wish]}`);
  if (end.kind === "departure") return rest("it finished: exit code 0");
  if (end.exitCode !== null && limits.permanentExitCodes.includes(end.exitCode)) {
    return {
      action: "tombstone",
      reason: `exit code ${end.exitCode} is declared permanent: trying again cannot help`,
    };
  }
  if (situation.mode === "no") return rest("its revive mode is no");
  if (situation.obstacle !== null) return { action: "ask", reason: situation.obstacle };
  const ageMs = nowMs - Math.max(end.atMs, situation.lastSeenMs);
  if (ageMs > limits.maxAgeMs) {
    return {
      action: "ask",
      reason: `it died ${hours(ageMs)} ago, more than the ${hours(limits.maxAgeMs)} that are revived unasked`,
    };
  }
  if (situation.mode === "ask") return { action: "ask", reason: "its revive mode is ask" };
  const lastHour = situation.revivalsMs.filter((ms) => nowMs - ms < HOUR_MS).length;
  if (lastHour >= limits.maxRevivalsPerHour) {
    return { action: "tombstone", reason: `${lastHour} revivals within an hour, the most that are allowed` };
  }
  if (end.quotaResetMs !== null && end.quotaResetMs > nowMs) {
    return {
      action: "revive",
      atMs: end.quotaResetMs,
      stepBackTo: null,
      reason: "its quota is used up; it sleeps until the reset",
    };
  }
  const atMs = nowMs + backoff(situation);
  if (situation.mode === "substitute")
    return { action: "substitute", atMs, reason: "its revive mode is substitute" };
  const alike = alikeInARow(situation.recentFingerprints);
  if (alike >= limits.alikeCrashesPerStep && alike % limits.alikeCrashesPerStep === 0) {
    const target = situation.olderCheckpoints[situation.stepsBack];
    if (target === undefined) {
      return {
        action: "tombstone",
        reason: `the same crash ${alike} times in a row, and no older checkpoint is left to step back to`,
      };
    }
    return {
      action: "revive",
      atMs,
      stepBackTo: target,
      reason: `the same crash ${alike} times in a row: one checkpoint back`,
    };
  }
  const wait = atMs - nowMs;
  return {
    action: "revive",
    atMs,
    stepBackTo: null,
    reason: wait === 0 ? "revived at once" : `revived after ${Math.round(wait / 1000)} s`,
  };
}

/** Whether a life of this length wipes the slate clean. */
export function wasHealthy(startedMs: number, endedMs: number, limits: PolicyLimits): boolean {
  return endedMs - startedMs >= limits.healthyMs;
}

const WORDS: Readonly<Record<Exclude<Wish, "running">, string>> = {
  stopped: "stop",
  paused: "pause",
  resting: "rest",
};

function rest(reason: string): Decision {
  return { action: "rest", reason };
}

function backoff({ attempt, limits, chance }: Situation): number {
  const step = limits.backoffMs[Math.min(attempt, limits.backoffMs.length - 1)] ?? 0;
  return Math.round(step * (1 + limits.jitter * (2 * chance - 1)));
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
