// Brings an agent back: fence → (step back to an older checkpoint; the failed scene was just kept) → resume note → start.
// Only under the mission's lock, and only with a decision or a human's word. The wish is read again under the lock, so a
// stop that came first always wins (INV-8).
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

const MOST_CHANGES = 200;

export async function reviveAgent(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  revival: Revival,
): Promise<Started> {
  const { machine, config } = context;
  const cell = cellPaths(config, mission);
  let command: readonly string[] = record.command;
  const placeholders = (epoch: number): Placeholders => ({
    mission,
    cell: cell.root,
    checkpoint: revival.stepBackTo ?? record.scene?.checkpoint ?? "",
    epoch: String(epoch),
    session: readSession(cell.root),
  });
  const template =
    revival.how === "substitute" ? (record.substitute ?? record.command) : readResumeCommand(cell.configFile);
  const request = {
    how: revival.how,
    get command() {
      return command;
    },
    async prepare(epoch: number) {
      const changes = revival.stepBackTo === null ? [] : await stepBack(context, mission, revival.stepBackTo);
      crashPoint("pit.revive.stepped-back");
      if (template !== undefined) command = fillIn(template, placeholders(epoch)) ?? record.command;
      writeResumeNote(machine, cell.root, {
        record,
        epoch,
        nowMs: machine.clock.nowMs(),
        stepBackTo: revival.stepBackTo,
        flows: readFlowPositions(cell.root),
        runs: readRunPositions(cell.root),
        changes: changes.slice(0, MOST_CHANGES),
        changesInAll: changes.length,
      });
      crashPoint("pit.revive.noted");
    },
  };
  const started = await startAgent(context, record, request);
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
      took_ms: record.end === null ? null : Math.max(0, machine.clock.nowMs() - record.end.at_ms),
    },
  });
  return started;
}

/** Restores an older checkpoint in place. Returns what could not be restored exactly, then what changed. */
async function stepBack(context: PitContext, mission: MissionId, checkpoint: string): Promise<string[]> {
  const { restoreCell } = await import("../../snapshot/operations/restore.ts");
  const missionContext = context.openMission(mission);
  const { changes, flaws } = await restoreCell(missionContext, { checkpoint, by: "pit" });
  const lines = Object.entries(changes).flatMap(([what, paths]) =>
    Array.isArray(paths)
      ? paths.map((path) => `${what}: ${typeof path === "string" ? path : JSON.stringify(path)}`)
      : [],
  );
  return [...flaws.map(({ path, reason }) => `not restored exactly: ${path}: ${reason}`), ...lines];
}

export interface Placeholders {
  readonly mission: string;
  readonly cell: string;
  readonly checkpoint: string;
  readonly epoch: string;
  /** Empty when the agent left none. */
  readonly session: string;
}

/**
 * The command with its placeholders filled in, word by word: a value never becomes more than one word, and nothing goes
 * through a shell. Undefined when a `{session}` is asked for and there is none: the start command must do.
 */
export function fillIn(template: readonly string[], values: Placeholders): readonly string[] | undefined {
  if (values.session === "" && template.some((word) => word.includes("{session}"))) return undefined;
  return template.map((word) =>
    word.replaceAll(
      /\{(mission|cell|checkpoint|epoch|session)\}/g,
      (_, name: keyof Placeholders) => values[name],
    ),
  );
}

/** `resume_command` of config/cell.json: a list of words, or a line for the shell. */
function readResumeCommand(configFile: string): readonly string[] | undefined {
  const reading = readJsonFile(configFile);
  const command = reading.ok ? reading.value.resume_command : undefined;
  if (Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string"))
    return command;
  if (typeof command === "string" && command.trim() !== "") return splitWords(command);
  return undefined;
}

/** Words by blanks; quotes hold one together. No shell: nothing is expanded. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double?.replaceAll(/\\(.)/g, "$1") ?? single ?? plain ?? "",
  );
}

/** The conversation that the agent was having, when it or a hook of it wrote that down in state/session.json. */
function readSession(cellRoot: string): string {
  const reading = readJsonFile(`${cellRoot}/state/session.json`);
  const session = reading.ok ? (reading.value.session_id ?? reading.value.session) : undefined;
  return typeof session === "string" && /^[\w.:@-]{1,200}$/.test(session) ? session : "";
}

/** The name under which settings know an agent: the program, not its path. */
export function agentName(command: readonly string[]): string {
  return basename(command[0] ?? "agent");
}
