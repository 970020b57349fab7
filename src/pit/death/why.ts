// The post-mortem of a life: how the agent ended, evidence for the cause, what was decided and why, and what to type
// next. Pure: a view in, lines out.
import { formatCount } from "../../platform/count.ts";
import {
  commandsForMissingCell,
  describeConversation,
  describeEnd,
  formatDuration,
  hasFailedCheckpoint,
} from "../describe.ts";
import { unansweredCalls } from "../record/conversation.ts";
import { type MissionRecord, type RecordedEnd, wasExpected } from "../record/record.ts";
import type { MissionView } from "../view.ts";
import { lastLogLines } from "./log-tail.ts";
import { BY_USER } from "./policy.ts";

export interface PostMortem {
  readonly mission_id: string;
  readonly state: string;
  readonly headline: string;
  readonly facts: readonly string[];
  readonly evidence: readonly string[];
  readonly last_words: readonly string[];
  readonly decision: string | null;
  readonly next: readonly string[];
}

export interface WhyOptions {
  readonly nowMs: number;
  readonly pitRuns: boolean;
  /** A preview of the end, when no pit has handled it yet. */
  readonly preview?: RecordedEnd | undefined;
}

export function explain(view: MissionView, options: WhyOptions): PostMortem {
  const { mission_id: mission, record, state } = view;
  const blank = { mission_id: mission, state, facts: [], evidence: [], last_words: [], decision: null };
  if (view.problem !== null) {
    const stop = view.pid === null ? [] : [`lazarus stop ${mission}`];
    // With a record, the problem is a stopped keeper, which a pit or a revival continues.
    const next =
      record !== null
        ? [options.pitRuns ? `lazarus status ${mission}` : `lazarus revive ${mission}`]
        : [...stop, `lazarus run ${mission} -- COMMAND`];
    return { ...blank, headline: view.problem, next };
  }
  if (record === null || record.life === null)
    return {
      ...blank,
      headline: `${mission} has never had an agent.`,
      next: [`lazarus run ${mission} -- COMMAND`],
    };
  if (state === "running" || (state === "paused" && view.pid !== null))
    return { ...blank, ...explainRunning(view, record, options) };
  if (record.end === null || record.end.epoch !== record.life.epoch)
    return { ...blank, ...explainUnhandled(view, record, options) };
  return {
    ...blank,
    headline: `${mission} ${headline(record, record.end)}.`,
    facts: listFacts(view, record, record.end, options.nowMs),
    evidence: record.end.evidence.map(({ says }) => says),
    last_words: logTail(record.end),
    decision: hasFailedCheckpoint(record) ? NOT_SAVED : describeDecision(record, options.nowMs),
    next: nextCommands(view, record, record.end, options),
  };
}

const NOT_SAVED = "not revived until the checkpoint succeeds; a pit retries it every 30 s";

type Section = Pick<PostMortem, "headline" | "next"> & Partial<PostMortem>;

function explainRunning(view: MissionView, record: MissionRecord, { nowMs }: WhyOptions): Section {
  const { mission_id: mission, pid, last_activity_ms: activeMs } = view;
  const paused = view.state === "paused";
  return {
    headline: `${mission} is ${paused ? "paused" : "running"}${pid === null ? "" : ` (process ${pid})`}.`,
    facts: [
      describeLife(record, nowMs),
      ...describeNote(record),
      ...describeConversation(view),
      // Older traces are those of an earlier life.
      ...(activeMs && activeMs >= (record.life?.started_ms ?? 0)
        ? [`last activity ${formatDuration(nowMs - activeMs)} ago`]
        : []),
      ...(record.end === null ? [] : [`previous life: ${describeEnd(record.end)}`]),
    ],
    evidence: record.end?.evidence.map(({ says }) => says) ?? [],
    next: [nextOfRunning(view)],
  };
}

function nextOfRunning({ mission_id: mission, state, record }: MissionView): string {
  if (state === "paused") return `lazarus revive ${mission}`;
  return record?.terminal ? `lazarus attach ${mission}` : `lazarus logs -f ${mission}`;
}

function explainUnhandled(
  view: MissionView,
  record: MissionRecord,
  { preview, nowMs, pitRuns }: WhyOptions,
): Section {
  const { mission_id: mission } = view;
  const revive =
    view.cell === "gone"
      ? commandsForMissingCell(mission, view.last_checkpoint !== null)
      : [`lazarus revive ${mission}`];
  const next = pitRuns ? [`lazarus status ${mission}`] : [...revive, "lazarus pit"];
  if (preview === undefined)
    return {
      headline: `${mission} has ended, but its end has not been handled yet.`,
      facts: [describeLife(record, nowMs)],
      next,
    };
  return {
    headline: `${mission} ${headline(record, preview)}.`,
    facts: [
      ...describeSpan(record, preview, nowMs),
      ...describeCalls(preview),
      "not handled yet: no checkpoint taken, nothing decided",
    ],
    evidence: preview.evidence.map(({ says }) => says),
    last_words: logTail(preview),
    next,
  };
}

const LINES_SHOWN = 5;

function logTail(end: RecordedEnd): readonly string[] {
  return end.kind === "departure" ? [] : lastLogLines(end.last_words, LINES_SHOWN);
}

function headline(record: MissionRecord, end: RecordedEnd): string {
  const ended = describeEnd(end);
  if (record.wish === "stopped" && has(end, "human")) return `was stopped by you (${ended})`;
  if (record.wish === "resting") return `is at rest (${ended})`;
  if (end.kind === "departure") return ended;
  const sentence = /^(?:killed|ended|lost)/.test(ended) ? `was ${ended}` : ended;
  const cause = CAUSES.find(([kind]) => has(end, kind) && canExplain(end, kind))?.[1];
  return cause === undefined || ended.includes(cause) ? sentence : `${sentence}: ${cause}`;
}

function has(end: RecordedEnd, kind: string): boolean {
  return end.evidence.some((each) => each.kind === kind);
}

/** A disk that is full now explains a failed write, not a signal from another process. */
function canExplain({ signal }: RecordedEnd, kind: string): boolean {
  return kind !== "disk-full" || signal === null || signal === "SIGBUS";
}

const CAUSES = [
  ["oom", "out of memory"],
  ["quota", "quota exhausted"],
  ["overload", "provider overloaded or unreachable"],
  ["auth", "authentication failed"],
  ["disk-full", "disk full"],
  ["not-found", "command not found or not executable"],
  ["permanent", "a permanent error"],
  ["host-sleep", "just after the machine woke"],
] as const;

const STARTED_AS = { start: "started by you", revival: "a revival", substitute: "a substitute" } as const;

function describeLife({ life }: MissionRecord, nowMs: number): string {
  const { epoch, how, started_ms: startedMs } = life!;
  return `life ${epoch} (${STARTED_AS[how]}) began ${formatDuration(nowMs - startedMs)} ago`;
}

function describeSpan(record: MissionRecord, end: RecordedEnd, nowMs: number): string[] {
  const livedMs = end.at_ms - (record.life?.started_ms ?? end.at_ms);
  return [
    `${describeLife(record, nowMs)} and lasted ${formatDuration(livedMs)}`,
    `it ended ${formatDuration(nowMs - end.at_ms)} ago`,
    ...describeNote(record),
  ];
}

function describeNote({ life }: MissionRecord): string[] {
  return life?.note === undefined ? [] : [life.note];
}

function listFacts(view: MissionView, record: MissionRecord, end: RecordedEnd, nowMs: number): string[] {
  const lines = describeSpan(record, end, nowMs);
  const delayMs = end.noticed_ms - end.at_ms;
  if (delayMs > 60_000) lines.push(`noticed ${formatDuration(delayMs)} later`);
  const { scene, steps_back: stepsBack } = record;
  if (scene?.checkpoint)
    lines.push(`${wasExpected(record, end) ? "" : "crash "}checkpoint: ${scene.checkpoint}`);
  else if (scene?.error)
    lines.push(
      `${scene.waived === "by-user" ? "checkpoint skipped, as you asked" : "checkpoint failed"}: ${scene.error}`,
    );
  lines.push(...describeCalls(end), ...describeConversation(view));
  const { revivals_today: revivals } = view;
  if (revivals > 0) lines.push(`revived ${formatCount(revivals, "time")} in the last 24 hours`);
  if (stepsBack > 0)
    lines.push(`stepped back ${formatCount(stepsBack, "checkpoint")} since its last healthy life`);
  return lines;
}

const OUTCOMES = {
  done: "you say: done",
  "not-done": "you say: not done",
  unknown: "outcome unknown",
} as const;

/** Tool calls that were running when it ended, numbered as `revive --call` takes them. */
function describeCalls({ open_calls: calls = [] }: RecordedEnd): string[] {
  return calls.map(
    ({ tool, summary, outcome }, index) =>
      `cut off: ${index + 1}. ${tool}: ${summary} (${OUTCOMES[outcome ?? "unknown"]})`,
  );
}

/** For example "needs your approval: revive mode is ask"; null before the end of this life is handled. */
export function describeDecision(record: MissionRecord, nowMs: number): string | null {
  const { decision } = record;
  if (decision === null || decision.epoch !== record.life?.epoch) return null;
  // Decided before the user's command.
  if (record.wish !== "running" && decision.action !== "tombstone")
    return `${DECISIONS.rest}: ${BY_USER[record.wish]}`;
  const { at_ms: atMs, step_back_to: target } = decision;
  const when = atMs !== null && atMs > nowMs ? ` in ${formatDuration(atMs - nowMs)}` : "";
  const from = target === null ? "" : ` from checkpoint ${target}`;
  return `${DECISIONS[decision.action]}${when}${from}: ${decision.reason}`;
}

/** Each action of a decision as a phrase. */
export const DECISIONS = {
  rest: "no action",
  ask: "needs your approval",
  revive: "revive",
  substitute: "start the substitute",
  tombstone: "tombstone, no more revivals",
} as const;

function nextCommands(
  view: MissionView,
  record: MissionRecord,
  end: RecordedEnd,
  options: WhyOptions,
): string[] {
  const mission = view.mission_id;
  if (view.cell === "gone") return commandsForMissingCell(mission, view.last_checkpoint !== null);
  if (end.kind === "departure" && record.wish === "running") return [`lazarus checkpoints ${mission}`];
  const next: string[] = [];
  if (view.state === "asking" && unansweredCalls(end.open_calls).length > 0)
    return ["done", "not-done", "unknown"].map((outcome) => `lazarus revive ${mission} --call ${outcome}`);
  if (hasFailedCheckpoint(record))
    return [
      `lazarus verify ${mission}`,
      `lazarus revive ${mission}`,
      `lazarus revive ${mission} --without-checkpoint`,
    ];
  if (has(end, "disk-full")) next.push(`df -h ${view.root}`, `lazarus prune ${mission}`);
  if (has(end, "not-found")) return [`lazarus logs ${mission}`, `lazarus run ${mission} -- COMMAND`];
  if (view.state === "waiting") {
    if (!options.pitRuns) next.push("lazarus pit");
    return [...next, `lazarus revive ${mission}`, `lazarus stop ${mission}`];
  }
  if (view.state === "tombstone" || view.state === "asking" || view.state === "dead")
    next.push(`lazarus logs ${mission}`);
  if (view.state === "tombstone" && record.scene?.checkpoint) next.push(`lazarus diff ${mission}`);
  return [...next, `lazarus revive ${mission}`];
}

export function renderWhy(post: PostMortem): string {
  const lines = [post.headline, ...post.facts.map((fact) => `  ${fact}`)];
  if (post.evidence.length > 0) lines.push("evidence", ...post.evidence.map((says) => `  ${says}`));
  if (post.last_words.length > 0) lines.push("log tail", ...post.last_words.map((line) => `  | ${line}`));
  if (post.decision !== null) lines.push("decision", `  ${post.decision}`);
  if (post.next.length > 0) lines.push("next", ...post.next.map((command) => `  ${command}`));
  return `${lines.join("\n")}\n`;
}
