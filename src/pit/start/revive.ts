// Revives an agent: fence, step back to an older checkpoint if so decided, write the resume note, start. The caller holds
// the mission's lock and has read the desired state under it, so a stop that came first always wins (INV-8).
import { basename } from "node:path";
import { cellPaths } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { readFlowPositions } from "../../flow/operations/positions.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import { readRunPositions } from "../../run/stores/positions.ts";
import type { PitContext } from "../context.ts";
import type { MissionRecord, RecordedLife } from "../record/record.ts";
import { writeResumeNote } from "./resume-note.ts";
import { type Started, startAgent } from "./start-agent.ts";

export interface Revival {
  readonly how: Extract<RecordedLife["how"], "revival" | "substitute">;
  readonly stepBackTo: string | null;
  readonly reason: string;
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
  const started = await startAgent(context, record, {
    how: revival.how,
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

/** Returns the command to start. */
async function prepareRevival(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  { how, stepBackTo }: Revival,
  epoch: number,
): Promise<readonly string[]> {
  const { machine, config } = context;
  const cell = cellPaths(config, mission);
  // Before the step back, which may restore an older cell.json.
  const template =
    how === "substitute" ? (record.substitute ?? record.command) : readResumeCommand(cell.configFile);
  const changes = stepBackTo === null ? [] : await stepBack(context, mission, stepBackTo);
  crashPoint("pit.revive.stepped-back");
  writeResumeNote(machine, cell.root, {
    record,
    epoch,
    nowMs: machine.clock.nowMs(),
    stepBackTo,
    flows: readFlowPositions(cell.root),
    runs: readRunPositions(cell.root),
    changes: changes.slice(0, CHANGES_LISTED),
    changesInAll: changes.length,
  });
  crashPoint("pit.revive.noted");
  if (template === undefined) return record.command;
  const values = {
    mission,
    cell: cell.root,
    checkpoint: stepBackTo ?? record.scene?.checkpoint ?? "",
    epoch: String(epoch),
    session: readSession(cell.root),
  };
  return fillPlaceholders(template, values) ?? record.command;
}

/** Restores an older checkpoint in place. Returns what could not be restored exactly, then what changed. */
async function stepBack(context: PitContext, mission: MissionId, checkpoint: string): Promise<string[]> {
  const { restoreCell } = await import("../../snapshot/operations/restore.ts");
  const missionContext = context.openMission(mission);
  const { changes, flaws } = await restoreCell(missionContext, { checkpoint, by: "pit" });
  const lines = Object.entries(changes).flatMap(([kind, paths]) =>
    Array.isArray(paths)
      ? paths.map((path) => `${kind}: ${typeof path === "string" ? path : JSON.stringify(path)}`)
      : [],
  );
  return [...flaws.map(({ path, reason }) => `not restored exactly: ${path}: ${reason}`), ...lines];
}

export interface Placeholders {
  readonly mission: string;
  readonly cell: string;
  readonly checkpoint: string;
  readonly epoch: string;
  /** Empty when the agent has stored none. */
  readonly session: string;
}

/**
 * Replaces placeholders word by word: a value never becomes more than one argument, and no shell is involved. Undefined
 * when the template needs a `{session}` and there is none; the caller falls back to the start command.
 */
export function fillPlaceholders(
  template: readonly string[],
  values: Placeholders,
): readonly string[] | undefined {
  if (values.session === "" && template.some((word) => word.includes("{session}"))) return undefined;
  return template.map((word) =>
    word.replaceAll(
      /\{(mission|cell|checkpoint|epoch|session)\}/g,
      (_, name: keyof Placeholders) => values[name],
    ),
  );
}

/** `resume_command` of config/cell.json: a list of arguments, or one line that is split at blanks. */
function readResumeCommand(configFile: string): readonly string[] | undefined {
  const reading = readJsonFile(configFile);
  const command = reading.ok ? reading.value.resume_command : undefined;
  if (Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string"))
    return command;
  if (typeof command === "string" && command.trim() !== "") return splitWords(command);
  return undefined;
}

/** Splits at blanks and honors quotes. Not a shell: nothing is expanded. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double?.replaceAll(/\\(.)/g, "$1") ?? single ?? plain ?? "",
  );
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
