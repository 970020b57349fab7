// What the pit knows about a mission's agent: how to start it, what the user wants, how its lives ended, what was decided.
// Plain data and pure transitions; store.ts reads and writes it, and unknown fields survive. After a kill between any two
// writes, the record is enough to continue (INV-8).
import type { PatternClass } from "../../agents/adapter.ts";
import type { ProcessIdentity } from "../../platform/process-identity.ts";
import type { TerminalSize } from "../terminal/size.ts";
import type { LifeConversation, OpenCall } from "./conversation.ts";

export const REVIVE_MODES = ["yes", "no", "ask", "substitute"] as const;

/** What to do when an agent dies. */
export type ReviveMode = (typeof REVIVE_MODES)[number];

export const DESIRED_STATES = ["running", "stopped", "paused", "resting"] as const;

/** What the user last asked for. Everything but `running` is a latch that survives reboots. */
export type DesiredState = (typeof DESIRED_STATES)[number];

export type EndKind = "departure" | "crash" | "stall";

/** What a retry can do: quota and overload pass on their own, auth needs a person, permanent never passes. */
export type FailureClass = PatternClass | "crash";

/** What to do about a life that ended. */
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

/** One life of an agent, written before its process starts. */
export interface RecordedLife {
  readonly epoch: number;
  readonly started_ms: number;
  readonly how: "start" | "revival" | "substitute";
  readonly command: readonly string[];
  /** The kernel's OOM kill counter at the start; null when it cannot be read. */
  readonly oom_kills: number | null;
  /** Size of the log at the start; what follows is this life's output. */
  readonly log_bytes: number;
  /** What the user should know about the choice of the command. */
  readonly note?: string;
  /** Random; LAZARUS_LIFE in the environment of all processes of this life. Absent in records of older versions. */
  readonly token?: string;
  /** The control group of its processes; null where none can be created. */
  readonly cgroup?: string | null;
  /** What the adapter did for this life; absent without one. */
  readonly conversation?: LifeConversation;
  /** The command whose terminal the agent has: it handles the exit and revives the agent there. Null in the background. */
  readonly foreground?: ProcessIdentity | null;
}

export interface RecordedEnd {
  readonly epoch: number;
  readonly kind: EndKind;
  readonly exit_code: number | null;
  readonly signal: string | null;
  /** Null for a departure; absent in records of older versions. */
  readonly class?: FailureClass | null;
  readonly at_ms: number;
  /** Much later than `at_ms` when no pit was running. */
  readonly noticed_ms: number;
  readonly fingerprint: string;
  readonly quota_reset_ms: number | null;
  /** Hints at the cause, one sentence each. */
  readonly evidence: readonly Evidence[];
  /** The end of the log. */
  readonly last_words: readonly string[];
  /** Processes that the agent left behind and that were killed. */
  readonly leftovers: number;
  /** Tool calls that were running when it ended, and where the conversation was; absent without an adapter. */
  readonly open_calls?: readonly OpenCall[];
  readonly turn?: number | null;
}

export interface Evidence {
  readonly kind:
    | "oom"
    | "disk-full"
    | PatternClass
    | "pattern"
    | "unfinished"
    | "unknown-session"
    | "host-sleep"
    | "reboot"
    | "keeper-vanished"
    | "never-started"
    | "not-found"
    | "stall"
    | "human"
    | "leftovers";
  readonly says: string;
}

/** The checkpoint taken after a life ended, or why there is none. */
export interface RecordedCheckpoint {
  readonly epoch: number;
  readonly checkpoint: string | null;
  readonly error: string | null;
  /** Why there will be none: there is nothing to save, or the user waived it. Otherwise it is retried. */
  readonly waived?: "cell-gone" | "by-user";
}

export interface RecordedDecision {
  readonly epoch: number;
  readonly action: Decision["action"];
  readonly reason: string;
  readonly decided_ms: number;
  /** When to act; null when no action follows. */
  readonly at_ms: number | null;
  readonly step_back_to: string | null;
}

/** How to start an agent, as the user gave it. */
export interface AgentSpec {
  readonly mission: string;
  readonly agent: string;
  /** Which agent CLI the command starts (src/agents); null: none that is known, or the user opted out. */
  readonly adapter?: string | null;
  readonly command: readonly string[];
  /** Null: the cell's worktree. */
  readonly cwd: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Null: as configured. */
  readonly revive: ReviveMode | null;
  readonly substitute: readonly string[] | null;
  /** Starts a revival instead of `command`; absent: that of the previous life, if its command was the same. */
  readonly resume_command?: readonly string[] | null;
  readonly stall_seconds: number | null;
  /** Every life of a known agent gets our MCP server; absent: as the user has registered it. */
  readonly mcp?: true;
  /** The terminal that every life gets, with its size at first; absent or null: none. */
  readonly terminal?: TerminalSize | null;
}

/** The stored document; `wish` is the desired state and `scene` the checkpoint taken after the end. */
export interface MissionRecord extends AgentSpec {
  readonly format: 1;
  readonly adapter: string | null;
  readonly resume_command: readonly string[] | null;
  /** Settings of the pit that the user granted this mission, by key (INV-11). */
  readonly settings: Readonly<Record<string, unknown>>;
  /** How many variables environment.json keeps for later lives; null: none, they get the pit's environment and `env`. */
  readonly environment: number | null;
  readonly wish: DesiredState;
  readonly wish_ms: number;
  readonly life: RecordedLife | null;
  /** Written before a stalled agent is killed, so that its end is not taken for a crash. */
  readonly stalled: { readonly epoch: number; readonly at_ms: number; readonly reason: string } | null;
  readonly end: RecordedEnd | null;
  readonly scene: RecordedCheckpoint | null;
  readonly decision: RecordedDecision | null;
  /** Revivals after a crash, oldest first. */
  readonly revivals_ms: readonly number[];
  /** Revivals after an overload or a used-up quota, oldest first: they never count toward a limit. */
  readonly retries_ms: readonly number[];
  /** Revivals after a crash since the last healthy life. */
  readonly attempt: number;
  /** Ends by overload or a used-up quota since the last healthy life. */
  readonly retries: number;
  /** Crashes since the last healthy life. */
  readonly deaths: readonly { readonly fingerprint: string; readonly at_ms: number }[];
  readonly steps_back: number;
  /** When the last of them was decided; null when there is none. */
  readonly stepped_back_ms: number | null;
  readonly tombstone: { readonly at_ms: number; readonly reason: string } | null;
  readonly last_seen_ms: number;
}

const REVIVALS_KEPT = 200;
const DEATHS_KEPT = 50;

/** The record of a mission that the user starts: discards earlier decisions. */
export function createRecord(
  previous: MissionRecord | undefined,
  spec: AgentSpec,
  nowMs: number,
): MissionRecord {
  return resetBackoff({
    ...(previous ?? DEFAULTS),
    ...spec,
    adapter: spec.adapter ?? null,
    terminal: spec.terminal ?? null,
    resume_command: spec.resume_command ?? keptResumeCommand(previous, spec),
    wish: "running",
    wish_ms: nowMs,
    last_seen_ms: nowMs,
  });
}

/** A resume command belongs to the command that it resumes. */
function keptResumeCommand(
  previous: MissionRecord | undefined,
  { command, resume_command: given }: AgentSpec,
): readonly string[] | null {
  if (given !== undefined || previous === undefined) return null;
  return JSON.stringify(previous.command) === JSON.stringify(command) ? previous.resume_command : null;
}

/** Values of absent fields, including those that older versions did not write. */
export const DEFAULTS = {
  format: 1,
  adapter: null,
  cwd: null,
  env: {},
  revive: null,
  substitute: null,
  resume_command: null,
  stall_seconds: null,
  settings: {},
  environment: null,
  wish_ms: 0,
  last_seen_ms: 0,
  life: null,
  stalled: null,
  end: null,
  scene: null,
  decision: null,
  revivals_ms: [],
  retries_ms: [],
  attempt: 0,
  retries: 0,
  deaths: [],
  steps_back: 0,
  stepped_back_ms: null,
  tombstone: null,
} as const;

/** After a user's command or a healthy life. Revival times stay: the hourly limit is never reset. */
function resetBackoff(record: MissionRecord): MissionRecord {
  return {
    ...record,
    attempt: 0,
    retries: 0,
    deaths: [],
    steps_back: 0,
    stepped_back_ms: null,
    tombstone: null,
  };
}

/** Written before the process starts, so that every revival counts. */
export function beginLife(record: MissionRecord, life: RecordedLife): MissionRecord {
  const begun = { ...record, life, stalled: null, last_seen_ms: life.started_ms, decision: null };
  if (life.how === "start") return begun;
  const add = (times: readonly number[]) => [...times, life.started_ms].slice(-REVIVALS_KEPT);
  if (wasRetry(record)) return { ...begun, retries_ms: add(record.retries_ms) };
  return { ...begun, attempt: record.attempt + 1, revivals_ms: add(record.revivals_ms) };
}

/** Whether the end before the newest life was caused by something that passes on its own. */
function wasRetry({ end }: MissionRecord): boolean {
  return end !== null && isTransient(end);
}

/** The failure is the provider's or the network's, so it counts neither as a crash nor toward a limit. */
export function isTransient(end: Pick<RecordedEnd, "class">): boolean {
  return end.class === "quota" || end.class === "overload";
}

/** A life of `healthyMs` or longer resets the backoff. */
export function endLife(record: MissionRecord, end: RecordedEnd, healthyMs: number): MissionRecord {
  const startedMs = record.life?.started_ms ?? end.at_ms;
  // The starter was killed, not the agent: no backoff. The revival still counts toward the hourly limit.
  if (end.evidence.some(({ kind }) => kind === "never-started"))
    return { ...record, end, attempt: Math.max(0, record.attempt - (wasRetry(record) ? 0 : 1)) };
  const before = end.at_ms - startedMs >= healthyMs ? resetBackoff(record) : record;
  if (isTransient(end)) return { ...before, end, retries: before.retries + 1 };
  const deaths = wasExpected(record, end)
    ? before.deaths
    : [...before.deaths, { fingerprint: end.fingerprint, at_ms: end.at_ms }].slice(-DEATHS_KEPT);
  return { ...before, end, deaths };
}

/** It exited 0, or the user had stopped it. */
export function wasExpected(record: MissionRecord, end: Pick<RecordedEnd, "kind">): boolean {
  return end.kind === "departure" || record.wish !== "running";
}

export function setCheckpoint(record: MissionRecord, scene: RecordedCheckpoint): MissionRecord {
  return { ...record, scene };
}

export function markStalled(record: MissionRecord, atMs: number, reason: string): MissionRecord {
  return { ...record, stalled: { epoch: record.life?.epoch ?? 0, at_ms: atMs, reason } };
}

export function setDesiredState(record: MissionRecord, state: DesiredState, nowMs: number): MissionRecord {
  const decision =
    state === "running" || record.decision === null ? record.decision : { ...record.decision, at_ms: null };
  return { ...record, wish: state, wish_ms: nowMs, decision };
}

/** The user asked for a revival: answers an `ask`, clears a latch or a tombstone. */
export function approveRevival(record: MissionRecord, nowMs: number): MissionRecord {
  return resetBackoff({ ...record, wish: "running", wish_ms: nowMs, last_seen_ms: nowMs });
}

/** Removes the decision, so that it is made again. */
export function dropDecision(record: MissionRecord): MissionRecord {
  const stepsBack = record.decision?.step_back_to == null ? record.steps_back : record.steps_back - 1;
  return { ...record, decision: null, steps_back: Math.max(0, stepsBack) };
}

export function setDecision(record: MissionRecord, decision: Decision, nowMs: number): MissionRecord {
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
    stepped_back_ms: stepBackTo === null ? record.stepped_back_ms : nowMs,
    tombstone: decision.action === "tombstone" ? { at_ms: nowMs, reason: decision.reason } : record.tombstone,
  };
}

/** What is left to do about the newest life, in order; each step happens once, even if a process is killed in between. */
export type Step = "none" | "record-end" | "checkpoint" | "decide" | "wait";

export function nextStep(record: MissionRecord): Step {
  const epoch = record.life?.epoch;
  if (epoch === undefined) return "none";
  if (record.end?.epoch !== epoch) return "record-end";
  if (record.scene?.epoch !== epoch || !isSettled(record.scene)) return "checkpoint";
  if (record.decision?.epoch !== epoch) return "decide";
  return record.decision.at_ms === null ? "none" : "wait";
}

/** False while the checkpoint has failed and is retried. */
export function isSettled({ checkpoint, waived }: RecordedCheckpoint): boolean {
  return checkpoint !== null || waived !== undefined;
}

/** The first death since the last healthy life: later checkpoints may contain what makes it crash. */
export function firstDeathMs(record: MissionRecord): number | undefined {
  return record.deaths[0]?.at_ms;
}
