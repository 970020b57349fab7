// A post-mortem in plain words: what was last known, how it ended, what speaks for a cause, what was decided and why, and
// what to type next. Pure: a view in, lines out.
import { describeEnd } from "../describe.ts";
import type { MissionRecord, RecordedEnd } from "../record/record.ts";
import type { MissionView } from "../view.ts";

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
  /** How it seems to have ended, when nobody has dealt with that yet. */
  readonly unseen?: RecordedEnd | undefined;
}

export function explain(view: MissionView, options: WhyOptions): PostMortem {
  const { mission_id: mission, record, state } = view;
  const blank = { mission_id: mission, state, facts: [], evidence: [], last_words: [], decision: null };
  if (view.problem !== null) {
    const end = view.pid === null ? [] : [`lazarus stop ${mission}`];
    return { ...blank, headline: view.problem, next: [...end, `lazarus run ${mission} -- COMMAND`] };
  }
  if (record === null || record.life === null)
    return {
      ...blank,
      headline: `${mission} never had an agent.`,
      next: [`lazarus run ${mission} -- COMMAND`],
    };
  const begun = `life ${record.life.epoch} (${LIFE_WORDS[record.life.how]}) began ${ago(options.nowMs - record.life.started_ms)} ago`;
  if (state === "running" || (state === "paused" && view.pid !== null)) {
    const last = record.end === null ? [] : [`the life before: ${describeEnd(record.end)}`];
    const active = view.last_activity_ms
      ? [`last activity ${ago(options.nowMs - view.last_activity_ms)} ago`]
      : [];
    return {
      ...blank,
      headline: `${mission} is ${state === "paused" ? "paused" : "alive"} (process ${view.pid}).`,
      facts: [begun, ...active, ...last],
      evidence: record.end?.evidence.map(({ says }) => says) ?? [],
      next: state === "paused" ? [`lazarus revive ${mission}`] : [`lazarus logs -f ${mission}`],
    };
  }
  if (record.end === null || record.end.epoch !== record.life.epoch) {
    const next = options.pitRuns
      ? [`lazarus status ${mission}`]
      : [`lazarus revive ${mission}`, "lazarus pit"];
    const { unseen, nowMs } = options;
    if (unseen === undefined)
      return {
        ...blank,
        headline: `${mission} is gone, and nobody has looked at how yet.`,
        facts: [begun],
        next,
      };
    return {
      ...blank,
      headline: `${mission} ${headline(record, unseen)}.`,
      facts: [
        ...span(record, unseen, begun, nowMs),
        "nobody has dealt with it yet: no scene is kept, nothing is decided",
      ],
      evidence: unseen.evidence.map(({ says }) => says),
      last_words: lastWords(unseen),
      next,
    };
  }
  return {
    ...blank,
    headline: `${mission} ${headline(record, record.end)}.`,
    facts: facts(view, record, record.end, begun, options.nowMs),
    evidence: record.end.evidence.map(({ says }) => says),
    last_words: lastWords(record.end),
    decision: decisionWords(record, options.nowMs),
    next: nextCommands(view, record, record.end, options),
  };
}

function lastWords(end: RecordedEnd): readonly string[] {
  return end.kind === "departure" ? [] : end.last_words.slice(-5);
}

const LIFE_WORDS = { start: "started by you", revival: "a revival", substitute: "a substitute" } as const;

function headline(record: MissionRecord, end: RecordedEnd): string {
  if (record.wish === "stopped") return `was stopped by you (${describeEnd(end)})`;
  if (record.wish === "resting") return `is at rest (${describeEnd(end)})`;
  const cause = CAUSES.find(([kind]) => end.evidence.some((each) => each.kind === kind))?.[1];
  const what = describeEnd(end);
  if (end.kind === "departure") return what;
  const died = end.signal !== null ? `was ${what}` : what.startsWith("gone") ? `is ${what}` : what;
  return cause === undefined || (cause === "out of memory" && what.includes(cause))
    ? died
    : `${died}: ${cause}`;
}

const CAUSES = [
  ["oom", "out of memory"],
  ["quota", "its quota is used up"],
  ["disk-full", "the disk is full"],
  ["not-found", "its command was not found or may not run"],
  ["permanent", "an error that it declared permanent"],
  ["host-sleep", "right after the machine woke"],
] as const;

function span(record: MissionRecord, end: RecordedEnd, begun: string, nowMs: number): string[] {
  const lived = end.at_ms - (record.life?.started_ms ?? end.at_ms);
  return [`${begun} and lasted ${ago(lived)}`, `it ended ${ago(nowMs - end.at_ms)} ago`];
}

function facts(
  view: MissionView,
  record: MissionRecord,
  end: RecordedEnd,
  begun: string,
  nowMs: number,
): string[] {
  const lines = span(record, end, begun, nowMs);
  if (end.noticed_ms - end.at_ms > 60_000)
    lines.push(`that was noticed ${ago(end.noticed_ms - end.at_ms)} later`);
  const { scene } = record;
  if (scene?.checkpoint) lines.push(`the scene is kept in checkpoint ${scene.checkpoint}`);
  else if (scene?.error) lines.push(`the scene could not be kept: ${scene.error}`);
  if (view.revivals_today > 0)
    lines.push(
      `it was revived ${view.revivals_today} time${view.revivals_today === 1 ? "" : "s"} in the last 24 hours`,
    );
  if (record.steps_back > 0)
    lines.push(
      `it was put back ${record.steps_back} checkpoint${record.steps_back === 1 ? "" : "s"} since its last healthy life`,
    );
  return lines;
}

function decisionWords(record: MissionRecord, nowMs: number): string | null {
  const { decision } = record;
  if (decision === null || decision.epoch !== record.life?.epoch) return null;
  const when = decision.at_ms !== null && decision.at_ms > nowMs ? ` in ${ago(decision.at_ms - nowMs)}` : "";
  const back = decision.step_back_to === null ? "" : `, from checkpoint ${decision.step_back_to}`;
  return `${ACTION_WORDS[decision.action]}${when}${back}: ${decision.reason}`;
}

const ACTION_WORDS = {
  rest: "left as it is",
  ask: "you are asked",
  revive: "revive",
  substitute: "start the substitute",
  tombstone: "tombstone: no more revivals",
} as const;

function nextCommands(
  view: MissionView,
  record: MissionRecord,
  end: RecordedEnd,
  options: WhyOptions,
): string[] {
  const mission = view.mission_id;
  const has = (kind: string) => end.evidence.some((each) => each.kind === kind);
  if (view.cell === "gone") return [`lazarus restore ${mission}`, `lazarus revive ${mission}`];
  if (end.kind === "departure" && record.wish === "running") return [`lazarus checkpoints ${mission}`];
  const next: string[] = [];
  if (has("disk-full")) next.push(`df -h ${view.root}`);
  if (has("not-found")) return [`lazarus logs ${mission}`, `lazarus run ${mission} -- COMMAND`];
  if (view.state === "waiting") {
    if (!options.pitRuns) next.push("lazarus pit");
    return [...next, `lazarus revive ${mission}`, `lazarus stop ${mission}`];
  }
  if (view.state === "tombstone" || view.state === "asking" || view.state === "dead")
    next.push(`lazarus logs ${mission}`);
  if (view.state === "tombstone" && record.scene?.checkpoint) next.push(`lazarus diff ${mission}`);
  return [...next, `lazarus revive ${mission}`];
}

/** The two largest units. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 1) return "less than a second";
  const units: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = units.findIndex(([value]) => value > 0);
  return units
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

export function renderWhy(post: PostMortem): string {
  const lines = [post.headline, ...post.facts.map((fact) => `  ${fact}`)];
  if (post.evidence.length > 0) lines.push("evidence", ...post.evidence.map((says) => `  ${says}`));
  if (post.last_words.length > 0) lines.push("last words", ...post.last_words.map((line) => `  | ${line}`));
  if (post.decision !== null) lines.push("decision", `  ${post.decision}`);
  if (post.next.length > 0) lines.push("next", ...post.next.map((command) => `  ${command}`));
  return `${lines.join("\n")}\n`;
}
