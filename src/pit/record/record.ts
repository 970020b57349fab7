// What the pit knows of a mission's agent: how to start it, what a human wants, how its lives ended and what was decided.
// Plain data, and pure transitions from one record to the next; record-file.ts stores it, and fields that it does not
// know stay. A record is always enough to go on after the pit was killed between any two writes (INV-8).
import {
  type Decision,
  type End,
  type PolicyLimits,
  type ReviveMode,
  type Situation,
  type Wish,
  wasHealthy,
} from "../death/policy.ts";

/** One life of an agent, as it was wanted: written before the process starts. */
export interface RecordedLife {
  readonly epoch: number;
  readonly started_ms: number;
  readonly how: "start" | "revival" | "substitute";
  readonly command: readonly string[];
  /** How often the kernel's out-of-memory killer had struck here by then; null when nobody can say. */
  readonly oom_kills: number | null;
  /** How long the log was by then: what follows are this life's own words. */
  readonly log_bytes: number;
}

export interface RecordedEnd {
  readonly epoch: number;
  readonly kind: End["kind"];
  readonly exit_code: number | null;
  readonly signal: string | null;
  readonly at_ms: number;
  /** When it was found out; much later than `at_ms` when the pit was down. */
  readonly noticed_ms: number;
  readonly fingerprint: string;
  readonly quota_reset_ms: number | null;
  /** What speaks for a cause, each in a sentence. */
  readonly evidence: readonly Evidence[];
  readonly last_words: readonly string[];
  /** Processes that it left behind and that were ended. */
  readonly leftovers: number;
}

export interface Evidence {
  readonly kind:
    | "oom"
    | "disk-full"
    | "quota"
    | "host-sleep"
    | "reboot"
    | "keeper-vanished"
    | "never-started"
    | "not-found"
    | "stall"
    | "human"
    | "permanent"
    | "leftovers";
  readonly says: string;
}

/** The scene as it was found: its checkpoint, or why there is none. */
export interface RecordedScene {
  readonly epoch: number;
  readonly checkpoint: string | null;
  readonly error: string | null;
}

export interface RecordedDecision {
  readonly epoch: number;
  readonly action: Decision["action"];
  readonly reason: string;
  readonly decided_ms: number;
  /** When to act; null when nothing will be done by itself. */
  readonly at_ms: number | null;
  readonly step_back_to: string | null;
}

export interface MissionRecord {
  readonly format: 1;
  readonly mission: string;
  readonly agent: string;
  readonly command: readonly string[];
  /** Null: the cell's worktree. */
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Null: what the settings say. */
  readonly revive: ReviveMode | null;
  readonly substitute: readonly string[] | null;
  readonly stall_seconds: number | null;
  readonly wish: Wish;
  readonly wish_ms: number;
  readonly life: RecordedLife | null;
  /** Written before a stalled agent is killed, so that its end is known for what it is. */
  readonly stalled: { readonly epoch: number; readonly at_ms: number; readonly reason: string } | null;
  readonly end: RecordedEnd | null;
  readonly scene: RecordedScene | null;
  readonly decision: RecordedDecision | null;
  /** The newest last. */
  readonly revivals_ms: readonly number[];
  readonly attempt: number;
  /** Deaths since the last healthy life. */
  readonly deaths: readonly { readonly fingerprint: string; readonly at_ms: number }[];
  readonly steps_back: number;
  readonly tombstone: { readonly at_ms: number; readonly reason: string } | null;
  readonly last_seen_ms: number;
}

export interface Orders {
  readonly mission: string;
  readonly agent: string;
  readonly command: readonly string[];
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  readonly revive: ReviveMode | null;
  readonly substitute: readonly string[] | null;
  readonly stall_seconds: number | null;
}

const MOST_REVIVALS = 200;
const MOST_DEATHS = 50;

/** The record of a mission that is started by a human: what was decided before is over. */
export function order(previous: MissionRecord | undefined, orders: Orders, nowMs: number): MissionRecord {
  return forgive({
    ...(previous ?? EMPTY),
    ...orders,
    wish: "running",
    wish_ms: nowMs,
    last_seen_ms: nowMs,
  });
}

/** What a record says that does not say; fields that other versions did not have, too. */
export const EMPTY = {
  format: 1,
  cwd: null,
  env: {},
  revive: null,
  substitute: null,
  stall_seconds: null,
  wish_ms: 0,
  last_seen_ms: 0,
  life: null,
  stalled: null,
  end: null,
  scene: null,
  decision: null,
  revivals_ms: [],
  attempt: 0,
  deaths: [],
  steps_back: 0,
  tombstone: null,
} as const;

/** A human's word, or a healthy life, wipes the slate clean. The times of revivals stay: the intensity is never reset. */
function forgive(record: MissionRecord): MissionRecord {
  return { ...record, attempt: 0, deaths: [], steps_back: 0, tombstone: null };
}

/** Written before the process starts, so that no revival goes uncounted. */
export function beginLife(record: MissionRecord, life: RecordedLife): MissionRecord {
  const revived = life.how !== "start";
  return {
    ...record,
    life,
    stalled: null,
    last_seen_ms: life.started_ms,
    decision: null,
    attempt: revived ? record.attempt + 1 : record.attempt,
    revivals_ms: revived
      ? [...record.revivals_ms, life.started_ms].slice(-MOST_REVIVALS)
      : record.revivals_ms,
  };
}

export function endLife(record: MissionRecord, end: RecordedEnd, limits: PolicyLimits): MissionRecord {
  const startedMs = record.life?.started_ms ?? end.at_ms;
  // Its starter was killed, not the agent: nothing to back off from. The revival itself still counts.
  if (end.evidence.some(({ kind }) => kind === "never-started"))
    return { ...record, end, attempt: Math.max(0, record.attempt - 1) };
  const before = wasHealthy(startedMs, end.at_ms, limits) ? forgive(record) : record;
  const deaths =
    end.kind === "departure" || record.wish !== "running"
      ? before.deaths
      : [...before.deaths, { fingerprint: end.fingerprint, at_ms: end.at_ms }].slice(-MOST_DEATHS);
  return { ...before, end, deaths };
}

export function keepScene(record: MissionRecord, scene: RecordedScene): MissionRecord {
  return { ...record, scene };
}

export function noteStall(record: MissionRecord, atMs: number, reason: string): MissionRecord {
  return { ...record, stalled: { epoch: record.life?.epoch ?? 0, at_ms: atMs, reason } };
}

export function setWish(record: MissionRecord, wish: Wish, nowMs: number): MissionRecord {
  const decision =
    wish === "running" || record.decision === null ? record.decision : { ...record.decision, at_ms: null };
  return { ...record, wish, wish_ms: nowMs, decision };
}

/** A human says: bring it back. Answers an `ask`, and lifts a latch and a tombstone. */
export function grant(record: MissionRecord, nowMs: number): MissionRecord {
  return forgive({ ...record, wish: "running", wish_ms: nowMs, last_seen_ms: nowMs });
}

export function enterDecision(record: MissionRecord, decision: Decision, nowMs: number): MissionRecord {
  const acts = decision.action === "revive" || decision.action === "substitute";
  const stepBackTo = decision.action === "revive" ? decision.stepBackTo : null;
  return {
    ...record,
    decision: {
      epoch: record.life?.epoch ?? 0,
      action: decision.action,
      reason: decision.reason,
      decided_ms: nowMs,
      at_ms: acts ? decision.atMs : null,
      step_back_to: stepBackTo,
    },
    steps_back: stepBackTo === null ? record.steps_back : record.steps_back + 1,
    tombstone: decision.action === "tombstone" ? { at_ms: nowMs, reason: decision.reason } : record.tombstone,
  };
}

/**
 * A decision whose time has changed its meaning. Made for a moment that passed longer ago than deaths are acted upon, it
 * is made again. Made later than now, the clock was set back: the wait begins anew, and does not grow by as much.
 */
export function refreshDecision(record: MissionRecord, nowMs: number, maxAgeMs: number): MissionRecord {
  const { decision } = record;
  if (decision === null || decision.at_ms === null) return record;
  if (nowMs - decision.at_ms > maxAgeMs) return { ...record, decision: null };
  if (nowMs >= decision.decided_ms) return record;
  const waitMs = decision.at_ms - decision.decided_ms;
  return { ...record, decision: { ...decision, decided_ms: nowMs, at_ms: nowMs + waitMs } };
}

/** What the policy is asked with. */
export function situationOf(
  record: MissionRecord,
  given: {
    readonly mode: ReviveMode;
    readonly limits: PolicyLimits;
    readonly olderCheckpoints: readonly string[];
    readonly obstacle: string | null;
    readonly nowMs: number;
    readonly chance: number;
  },
): Situation {
  const end = record.end!;
  return {
    ...given,
    wish: record.wish,
    end: {
      kind: end.kind,
      exitCode: end.exit_code,
      signal: end.signal,
      atMs: end.at_ms,
      fingerprint: end.fingerprint,
      quotaResetMs: end.quota_reset_ms,
    },
    startedMs: record.life?.started_ms ?? end.at_ms,
    lastSeenMs: record.last_seen_ms,
    revivalsMs: record.revivals_ms,
    attempt: record.attempt,
    recentFingerprints: record.deaths.map(({ fingerprint }) => fingerprint),
    stepsBack: record.steps_back,
  };
}

/** What must still be done about the newest life, in order; each is done once, whoever is killed in between. */
export type Step = "nothing" | "record-end" | "keep-scene" | "decide" | "wait";

export function nextStep(record: MissionRecord): Step {
  const epoch = record.life?.epoch;
  if (epoch === undefined) return "nothing";
  if (record.end?.epoch !== epoch) return "record-end";
  if (record.scene?.epoch !== epoch) return "keep-scene";
  if (record.decision?.epoch !== epoch) return "decide";
  return record.decision.at_ms === null ? "nothing" : "wait";
}

/** Since when it goes wrong: checkpoints from then on may hold what makes it crash. */
export function troubleStartMs(record: MissionRecord): number | undefined {
  return record.deaths[0]?.at_ms;
}
