// What a revived agent finds: state/resume.json for programs, artifacts/handoff.md for readers. Both say why it died, which
// checkpoint has its state, which flow step is next, which effects happened that the files do not show, which are
// unknown, and what changed on disk. Text from logs and flows is data: indented as code, never mixed with instructions.

import { dirname, join } from "node:path";
import { refuseOutside } from "../../cell/mission-id.ts";
import { describeEffect, type EffectNote } from "../../effects/notes.ts";
import type { FlowPosition } from "../../flow/operations/positions.ts";
import { formatCount } from "../../platform/count.ts";
import { makeDirectory, replaceFile } from "../../platform/durable.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";
import { OPEN } from "../../run/journal/head.ts";
import type { RunPosition } from "../../run/store/positions.ts";
import { describeEnd } from "../describe.ts";
import type { MissionRecord } from "../record/record.ts";

export interface ResumeFacts {
  readonly record: MissionRecord;
  /** Epoch of the life that starts. */
  readonly epoch: number;
  readonly nowMs: number;
  /** Null when the files are as the last life left them. */
  readonly stepBackTo: string | null;
  /** The checkpoint that the user restored before this life. */
  readonly restoredTo?: string | null;
  readonly flows: readonly FlowPosition[];
  readonly runs: readonly RunPosition[];
  /** Effects after the state that the files were restored to, and effects with an unknown outcome. */
  readonly doneSince: readonly EffectNote[];
  readonly unknown: readonly EffectNote[];
  /** Set when the effect history cannot be read, completely or in part. */
  readonly historyProblem: string | null;
  /** What the step back changed on disk, one line each; the first few hundred. */
  readonly changes: readonly string[];
  readonly changesInAll: number;
}

/** The field names are a contract: agents read them. */
export function resumeDocument(facts: ResumeFacts): Record<string, unknown> {
  const { record } = facts;
  const { end, scene, decision } = record;
  return {
    format: 1,
    mission_id: record.mission,
    epoch: facts.epoch,
    revived_at_ms: facts.nowMs,
    revivals: record.revivals_ms.length + 1,
    died: end && {
      kind: end.kind,
      exit_code: end.exit_code,
      signal: end.signal,
      at_ms: end.at_ms,
      why: describeEnd(end),
      evidence: end.evidence,
      last_words: end.last_words,
    },
    decision: decision && { action: decision.action, reason: decision.reason },
    scene_checkpoint: scene?.checkpoint ?? null,
    stepped_back_to: facts.stepBackTo,
    restored_to: facts.restoredTo ?? null,
    next: openFlows(facts).map((flow) => ({
      workflow: flow.workflowId,
      agent: flow.agentId,
      step: flow.currentStep,
      status: flow.status,
      completed_steps: flow.completedSteps,
      file: flow.file,
    })),
    runs: openRuns(facts).map((run) => ({
      run: run.runId,
      agent: run.agentId,
      status: run.status,
      step: run.step,
      unknown_effects: run.unknownEffects,
    })),
    unknown_effects: facts.runs.reduce(
      (sum, run) => sum + run.unknownEffects,
      unknownElsewhere(facts).length,
    ),
    cut_off_calls: record.end?.open_calls ?? [],
    done_since: facts.doneSince,
    unknown: facts.unknown,
    history_problem: facts.historyProblem,
    changed_on_disk: { in_all: facts.changesInAll, paths: facts.changes },
  };
}

export function openFlows({ flows }: ResumeFacts): FlowPosition[] {
  return flows.filter(({ status }) => status === "in_progress" || status === "blocked");
}

function openRuns({ runs }: ResumeFacts): RunPosition[] {
  return runs.filter(({ status, unknownEffects }) => OPEN.includes(status) || unknownEffects > 0);
}

/** Unknown effects that no run in the cell has: of flows, of agent CLIs, and of runs that went back. */
function unknownElsewhere({ unknown, runs }: ResumeFacts): EffectNote[] {
  const counted = new Set(runs.filter(({ unknownEffects }) => unknownEffects > 0).map(({ runId }) => runId));
  return unknown.filter(({ source, where }) => source !== "run" || !counted.has(where));
}

const EFFECTS_LISTED = 100;

/** As code: names and commands are data. */
function effectLines(effects: readonly EffectNote[]): string[] {
  const lines = effects.slice(-EFFECTS_LISTED).map((effect) => `    ${describeEffect(effect)}`);
  return effects.length > EFFECTS_LISTED
    ? [`    … ${effects.length - EFFECTS_LISTED} earlier in state/resume.json`, ...lines]
    : lines;
}

function effectSections(facts: ResumeFacts): string[] {
  const lines: string[] = [];
  if (facts.doneSince.length > 0) {
    lines.push(
      "",
      "## Done since",
      "",
      "These happened after the checkpoint that the files were restored to. They were not undone, and the files do not",
      "show them. The same key or call returns the recorded result; do not repeat them in another way.",
      "",
      ...effectLines(facts.doneSince),
    );
  }
  const runs = facts.runs.filter(({ unknownEffects }) => unknownEffects > 0);
  const elsewhere = unknownElsewhere(facts);
  lines.push("", "## Effects with unknown outcome", "");
  if (facts.historyProblem !== null) lines.push(`The list may be incomplete: ${facts.historyProblem}.`, "");
  else if (runs.length + elsewhere.length === 0) lines.push("None.");
  for (const run of runs)
    lines.push(
      `- run \`${run.runId}\`: ${run.unknownEffects}; check what happened, then record it with \`lazarus runs resolve\``,
    );
  if (elsewhere.length > 0) {
    lines.push(
      "Check what happened before you repeat it. A step of a flow runs again with `lazarus flow once --retry-unknown`.",
      "",
      ...effectLines(elsewhere),
    );
  }
  return lines;
}

export function handoffText(facts: ResumeFacts): string {
  const { record } = facts;
  const lines = [
    `# Hand-off for ${record.mission}`,
    "",
    `You are life ${facts.epoch} of this mission. The previous life: ${record.end ? describeEnd(record.end) : "end unknown"}.`,
    "",
  ];
  const { end, scene } = record;
  if (end !== null && end.evidence.length > 0) {
    lines.push("Evidence for the cause:", ...end.evidence.map(({ says }) => `- ${says}`), "");
  }
  lines.push("## State of the files", "");
  if (facts.stepBackTo !== null) {
    lines.push(
      `The same crash repeated, so the cell was restored to checkpoint ${facts.stepBackTo}. The state at the crash is in ${scene?.checkpoint ? `checkpoint ${scene.checkpoint}` : "no checkpoint"}.`,
    );
    if (facts.changesInAll > 0) {
      lines.push(
        "",
        `${formatCount(facts.changesInAll, "path")} changed since the crash:`,
        ...facts.changes.map((path) => `- ${path}`),
      );
      if (facts.changes.length < facts.changesInAll) lines.push("- …");
    }
  } else if (facts.restoredTo != null) {
    lines.push(
      `The user restored checkpoint ${facts.restoredTo}. What the previous life left is in ${scene?.checkpoint ? `checkpoint ${scene.checkpoint}` : "no checkpoint"}.`,
    );
  } else if (scene?.checkpoint) {
    lines.push(`As the previous life left them; also in checkpoint ${scene.checkpoint}.`);
  } else
    lines.push(`As the previous life left them. No checkpoint: ${scene?.error ?? "none was requested"}.`);
  lines.push("", "## Next", "");
  const flows = openFlows(facts);
  const runs = openRuns(facts);
  if (flows.length + runs.length === 0)
    lines.push("No flow or run is open: start with the mission's own notes.");
  for (const flow of flows) {
    lines.push(
      `- flow \`${flow.workflowId}\`: step \`${flow.currentStep}\` is next (${flow.completedSteps} done, ${flow.status}); continue with \`lazarus flow resume -w ${flow.workflowId}\``,
    );
  }
  for (const run of runs) lines.push(`- run \`${run.runId}\`: ${run.status} at step ${run.step}`);
  lines.push(...effectSections(facts));
  if (end !== null && end.last_words.length > 0)
    lines.push("", "## Log tail", "", ...end.last_words.map((line) => `    ${line}`));
  return `${lines.join("\n")}\n`;
}

export function writeResumeNote(machine: Machine, cellRoot: string, facts: ResumeFacts): void {
  const resume = join(cellRoot, "state", "resume.json");
  const handoff = join(cellRoot, "artifacts", "handoff.md");
  for (const path of [resume, handoff]) {
    makeDirectory(machine.disk, dirname(path));
    refuseOutside(cellRoot, dirname(path));
  }
  const previous = readJsonFile(resume, undefined, exactNumbers);
  writeJsonFile(machine.disk, resume, { ...(previous.ok ? previous.value : {}), ...resumeDocument(facts) });
  replaceFile(machine.disk, handoff, handoffText(facts));
}
