// Revives an agent: fence, step back to an older checkpoint if so decided, write the resume note, start. The caller holds
// the mission's lock and has read the desired state under it, so a stop that came first always wins (INV-8).

import { basename, join } from "node:path";
import { readTranscriptNow } from "../../agents/conversation/read-now.ts";
import { cellPaths } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { readFlowPositions } from "../../flow/operations/positions.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import type { Lock } from "../../platform/lock.ts";
import { readRunPositions } from "../../run/store/positions.ts";
import type { PitContext } from "../context.ts";
import { recordCalls } from "../conversation/record-calls.ts";
import { describeError } from "../describe.ts";
import { readEffectFacts } from "../effect-facts.ts";
import type { MissionRecord, RecordedDecision, RecordedLife } from "../record/record.ts";
import { continueConversation, deliverByHook, planResume, type ResumePlan } from "./agent-conversation.ts";
import { findRevivalObstacle } from "./find-obstacle.ts";
import { fillPlaceholders } from "./resume-command.ts";
import { type ResumeFacts, writeResumeNote } from "./resume-note.ts";
import { resumePrompt } from "./resume-prompt.ts";
import { notStarted, type Prepared, type Started, startAgent } from "./start-agent.ts";

export interface Revival {
  readonly how: Extract<RecordedLife["how"], "revival" | "substitute">;
  readonly stepBackTo: string | null;
  /** The checkpoint that the user has restored, in place of the files of the last life. */
  readonly restoredTo?: string | null;
  readonly reason: string;
  /** The mission's lock, which a step back needs. */
  readonly heldLock: Lock;
  readonly foreground?: boolean;
}

/** Listed in the resume note. */
const CHANGES_LISTED = 200;

export async function reviveAgent(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  revival: Revival,
): Promise<Started> {
  const { clock } = context.machine;
  const obstacle = findRevivalObstacle(context, record, revival.how);
  if (obstacle !== undefined) throw notStarted(mission, obstacle.reason, obstacle.hint);
  const started = await startAgent(context, record, {
    how: revival.how,
    foreground: revival.foreground === true,
    prepare: (epoch, environment) =>
      prepareRevival(context, mission, record, { ...revival, epoch, environment }),
  });
  context.recordEvent({
    kind: "revival",
    mission,
    data: {
      epoch: started.epoch,
      pid: started.life?.agent.pid ?? null,
      how: revival.how,
      reason: revival.reason,
      checkpoint: record.scene?.checkpoint ?? null,
      stepped_back_to: revival.stepBackTo,
      took_ms: record.end === null ? null : Math.max(0, clock.nowMs() - record.end.at_ms),
    },
  });
  return started;
}

/** Acts on a recorded decision whose time has come. */
export function reviveAsDecided(
  context: PitContext,
  { record, decision }: { readonly record: MissionRecord; readonly decision: RecordedDecision },
  heldLock: Lock,
  options: { readonly foreground?: boolean } = {},
): Promise<Started> {
  return reviveAgent(context, record.mission as MissionId, record, {
    how: decision.action === "substitute" ? "substitute" : "revival",
    stepBackTo: decision.step_back_to,
    reason: decision.reason,
    heldLock,
    ...options,
  });
}

interface NewLife extends Revival {
  readonly epoch: number;
  readonly environment: Readonly<Record<string, string>>;
}

/** Returns the command to start, and why it is not the resume command. */
async function prepareRevival(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  life: NewLife,
): Promise<Prepared> {
  const { machine, config } = context;
  const { how, stepBackTo, restoredTo = null, heldLock, epoch } = life;
  const cell = cellPaths(config, mission);
  const changes = stepBackTo === null ? [] : await stepBack(context, mission, stepBackTo, heldLock);
  crashPoint("pit.revive.stepped-back");
  recordCalls(machine, cell.root, record);
  const facts: ResumeFacts = {
    record,
    epoch,
    nowMs: machine.clock.nowMs(),
    stepBackTo,
    restoredTo: restoredTo ?? (stepBackTo === null ? restoredSince(context, mission, record) : null),
    flows: readFlowPositions(cell.root),
    runs: readRunPositions(cell.root),
    ...readEffectFacts(machine, cell.root),
    changes: changes.slice(0, CHANGES_LISTED),
    changesInAll: changes.length,
  };
  writeResumeNote(machine, cell.root, facts);
  crashPoint("pit.revive.noted");
  const name = how === "substitute" ? "substitute" : "resume_command";
  const template = record[name];
  const conversation = await planConversation(context, mission, facts, life.environment);
  // The note reaches the model in exactly one way: as the prompt, or through its hook if the user's command has no place for it.
  deliverByHook(context, mission, template === null ? undefined : conversation?.note);
  if (template === null)
    return conversation === undefined
      ? { command: record.command }
      : await continueConversation(context, record, conversation.plan, conversation.note, epoch);
  const filled = fillPlaceholders(template, {
    mission,
    cell: cell.root,
    checkpoint: stepBackTo ?? restoredTo ?? record.scene?.checkpoint ?? "",
    epoch: String(epoch),
    session: readSession(cell.root),
  });
  if ("command" in filled) return filled;
  const note = `started with its start command, since ${name} cannot be used: ${filled.refused}`;
  return { command: record.command, note };
}

/** How the agent's conversation continues, and what the model is told; undefined without an adapter. */
async function planConversation(
  context: PitContext,
  mission: MissionId,
  facts: ResumeFacts,
  environment: NewLife["environment"],
): Promise<{ readonly plan: ResumePlan; readonly note: string } | undefined> {
  const { record } = facts;
  const plan = planResume(context, record, environment);
  if (plan === undefined) return undefined;
  const { adapter, invocation } = plan.agent;
  const conversation = {
    how: plan.problem === null ? ("resume" as const) : ("restart" as const),
    problem: plan.problem,
    turn: plan.position?.turn ?? null,
    turnAtEnd: record.end?.turn ?? null,
    isWaiting: !invocation.isHeadless && plan.position?.isFinished === true,
    placeholder: adapter.placeholder,
    damagedLines: plan.position?.damagedLines ?? 0,
    lostCalls: plan.problem === null ? [] : await listLostCalls(context, mission, plan),
    changedSince: await listChanges(context, mission, facts),
  };
  const handoff = join(cellPaths(context.config, mission).artifacts, "handoff.md");
  return { plan, note: resumePrompt(facts, conversation, handoff) };
}

/** What a conversation did that is not continued, for a model that does not see it. */
async function listLostCalls(
  context: PitContext,
  mission: MissionId,
  { position }: ResumePlan,
): Promise<string[]> {
  try {
    const transcript = await readTranscriptNow(context.openMission(mission));
    if (transcript === undefined) return [];
    const open = new Set(position?.open.map(({ id, summary }) => id ?? summary));
    return transcript.adapter.transcript
      .entries(transcript.texts)
      .flatMap(({ call }) => (call === null || open.has(call.id ?? call.summary) ? [] : [call]))
      .map(({ tool, summary, command }) => `${tool}: ${command ?? summary}`);
  } catch (error) {
    context.log(`${mission}: cannot tell what the last conversation did: ${describeError(error)}`);
    return [];
  }
}

/** The checkpoint that all files were restored to after the last life; null when they were not. */
function restoredSince(context: PitContext, mission: MissionId, { end }: MissionRecord): string | null {
  try {
    const refs = context.openMission(mission).vault.list();
    const last = refs.findLast((ref) => ref.beforeRestoreOf !== null);
    const isWhole = (last?.restoredPaths ?? []).length === 0;
    return last !== undefined && isWhole && last.createdAtMs > (end?.at_ms ?? 0)
      ? last.beforeRestoreOf
      : null;
  } catch {
    // The vault is damaged, and the user revives without a checkpoint.
    return null;
  }
}

/** Within this time after a crash, changes by others are not searched for. */
const UNCHANGED_MS = 5000;

/** Paths in the worktree that changed after the checkpoint of the last life. A problem here never fails the revival. */
async function listChanges(
  context: PitContext,
  mission: MissionId,
  { record, nowMs, stepBackTo, restoredTo = null }: ResumeFacts,
): Promise<string[]> {
  const { end, scene } = record;
  if (stepBackTo !== null || restoredTo !== null || !scene?.checkpoint) return [];
  if (nowMs - (end?.noticed_ms ?? 0) < UNCHANGED_MS) return [];
  try {
    const { changesSince } = await import("../../snapshot/operations/changes-since.ts");
    return await changesSince(context.openMission(mission), scene.checkpoint, "worktree/");
  } catch (error) {
    context.log(`${mission}: cannot tell what has changed since: ${describeError(error)}`);
    return [];
  }
}

/** Restores an older checkpoint in place. Returns what could not be restored exactly, then what changed. */
async function stepBack(
  context: PitContext,
  mission: MissionId,
  checkpoint: string,
  heldLock: Lock,
): Promise<string[]> {
  const { restoreCell } = await import("../../snapshot/operations/restore.ts");
  const missionContext = context.openMission(mission);
  const { changes, flaws } = await restoreCell(missionContext, { checkpoint, by: "pit", heldLock });
  const lines = Object.entries(changes).flatMap(([kind, paths]) =>
    Array.isArray(paths)
      ? paths.map((path) => `${kind}: ${typeof path === "string" ? path : JSON.stringify(path)}`)
      : [],
  );
  return [...flaws.map(({ path, reason }) => `not restored exactly: ${path}: ${reason}`), ...lines];
}

/** The agent's conversation, if the agent or one of its hooks wrote it to state/session.json. */
function readSession(cellRoot: string): string {
  const reading = readJsonFile(`${cellRoot}/state/session.json`);
  const session = reading.ok ? (reading.value.session_id ?? reading.value.session) : undefined;
  return typeof session === "string" && /^[\w.:@-]{1,200}$/.test(session) ? session : "";
}

/** The name of an agent in the settings: the program without its directory. */
export function agentName(command: readonly string[]): string {
  return basename(command[0] ?? "agent");
}
