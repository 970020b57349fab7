// Why an agent cannot be started although it should be: its cell, its working directory, its environment or its program
// is missing, or another agent works in its directory.
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../../cell/config.ts";
import { describeForeignAgent, findForeignAgent } from "../../cell/foreign-agents.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import { identifyDirectory, isSameDirectory, readOutsideWorktree } from "../../cell/worktree-record.ts";
import { asLazarusError } from "../../platform/errors.ts";
import type { PitContext } from "../context.ts";
import { knownAgent } from "../conversation/known-agent.ts";
import { currentSession, findProcess } from "../conversation/session-claim.ts";
import { commandsForMissingCell } from "../describe.ts";
import type { MissionRecord } from "../record/record.ts";
import { agentEnvironment } from "./agent-environment.ts";
import { findProgramProblem } from "./find-program.ts";

/** Hint for a mission whose cell is gone. */
export function bringBackHint(config: Config, mission: string): string {
  const hasCheckpoint = existsSync(join(config.vault_root, mission, "index.json"));
  return commandsForMissingCell(mission, hasCheckpoint).join(", then: ");
}

export interface Obstacle {
  readonly reason: string;
  readonly hint: string;
}

/** Why the agent cannot be revived; undefined when it can. A revival also depends on what was kept from the first life. */
export function findRevivalObstacle(
  context: PitContext,
  record: MissionRecord,
  how: "revival" | "substitute",
): Obstacle | undefined {
  const obstacle = findObstacle(context.config, record);
  if (obstacle !== undefined) return obstacle;
  const agent = how === "revival" && record.resume_command === null ? knownAgent(context, record) : undefined;
  const session = agent === undefined ? null : currentSession(context.config, record, agent.adapter);
  const { root, worktree } = cellPaths(context.config, parseMissionId(record.mission));
  const directory = record.cwd ?? worktree;
  const user = session === null ? undefined : findProcess(agent!.adapter, session, directory);
  if (user !== undefined)
    return {
      reason: `its session ${session} is in use by ${user.who}`,
      hint: `end that first, then: lazarus revive ${record.mission}`,
    };
  let path: string | undefined;
  try {
    path = agentEnvironment(context, record).PATH;
  } catch (error) {
    const { message, hint } = asLazarusError(error, "reading its environment");
    return { reason: message, hint: hint ?? "" };
  }
  const [first = "", ...rest] =
    record[how === "substitute" ? "substitute" : "resume_command"] ?? record.command;
  const program = first.replaceAll("{cell}", root);
  // A program in the cell may come back when the pit steps back to an older checkpoint.
  if (first === "" || (program.includes("/") && resolve(directory, program).startsWith(`${root}/`)))
    return undefined;
  const problem = findProgramProblem([program, ...rest], path, directory);
  if (problem === undefined) return undefined;
  return { reason: problem, hint: `install it, then: lazarus revive ${record.mission}` };
}

/** Undefined when the agent can be started. */
export function findObstacle(config: Config, record: MissionRecord): Obstacle | undefined {
  const { mission } = record;
  const cell = cellPaths(config, parseMissionId(mission));
  const restore = bringBackHint(config, mission);
  if (!existsSync(cell.root)) return { reason: `its cell ${cell.root} is gone`, hint: restore };
  const outside = record.cwd === null ? readOutsideWorktree(config.missions_root, mission) : undefined;
  const found = outside === undefined ? undefined : identifyDirectory(outside.path);
  if (outside !== undefined && found !== undefined && !isSameDirectory(outside, found))
    return {
      reason: `${outside.path} is no longer the directory that was its worktree: it was moved or replaced`,
      hint: `lazarus protect NEWDIR --mission ${mission}, then: lazarus revive ${mission}`,
    };
  const foreign = outside === undefined ? undefined : findForeignAgent(outside.path, cell.root);
  if (foreign !== undefined)
    return {
      reason: `an agent of ${describeForeignAgent(foreign)} works in ${outside!.path}`,
      hint: `stop it there, then: lazarus revive ${mission}`,
    };
  const directory = record.cwd ?? cell.worktree;
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  return {
    reason: `its working directory ${directory} does not exist`,
    hint: record.cwd === null ? restore : `mkdir -p ${directory}, then: lazarus revive ${mission}`,
  };
}
