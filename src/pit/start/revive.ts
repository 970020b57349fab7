// Revives an agent: fence, step back to an older checkpoint if so decided, write the resume note, start. The caller holds
// the mission's lock and has read the desired state under it, so a stop that came first always wins (INV-8).
import { basename } from "node:path";
import { cellPaths } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { readFlowPositions } from "../../flow/operations/positions.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import type { Lock } from "../../platform/lock.ts";
import { readRunPositions } from "../../run/stores/positions.ts";
import type { PitContext } from "../context.ts";
import { readEffectFacts } from "../effect-facts.ts";
import type { MissionRecord, RecordedDecision, RecordedLife } from "../record/record.ts";
import { findRevivalObstacle } from "./find-obstacle.ts";
import { fillPlaceholders } from "./resume-command.ts";
import { writeResumeNote } from "./resume-note.ts";
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
    prepare: (epoch) => prepareRevival(context, mission, record, revival, epoch),
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

/** Returns the command to start, and why it is not the resume command. */
async function prepareRevival(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  { how, stepBackTo, restoredTo = null, heldLock }: Revival,
  epoch: number,
): Promise<Prepared> {
  const { machine, config } = context;
  const cell = cellPaths(config, mission);
  const changes = stepBackTo === null ? [] : await stepBack(context, mission, stepBackTo, heldLock);
  crashPoint("pit.revive.stepped-back");
  writeResumeNote(machine, cell.root, {
    record,
    epoch,
    nowMs: machine.clock.nowMs(),
    stepBackTo,
    restoredTo,
    flows: readFlowPositions(cell.root),
    runs: readRunPositions(cell.root),
    ...readEffectFacts(machine, cell.root),
    changes: changes.slice(0, CHANGES_LISTED),
    changesInAll: changes.length,
  });
  crashPoint("pit.revive.noted");
  const name = how === "substitute" ? "substitute" : "resume_command";
  const template = record[name];
  if (template === null) return { command: record.command };
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
