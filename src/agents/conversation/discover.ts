// Which session a mission's agent is in. The pit chose it, or a hook of the current life reported it (an interactive agent can
// start another one at any time), or the agent printed it, or it is the newest session of the directory since the start.
// A session belongs to one mission: a claim outside the cell records which.
import { hash } from "node:crypto";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { agentDirectory, readEpoch } from "../../cell/fence.ts";
import { cellRoot, parseMissionId } from "../../cell/mission-id.ts";
import { createFile, makeDirectory, replaceFile } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Adapter, Place, SessionReader } from "../adapter.ts";
import { readHookSession } from "../hook-lines.ts";
import { readSession, type Session } from "../session.ts";
import type { ConversationCell } from "./cell.ts";
import { readRange } from "./source.ts";

/** Null while nothing is known. */
export function discoverSession(
  cell: ConversationCell,
  adapter: Adapter,
  place: Place,
  recorded: Session,
  reader: SessionReader,
): string | null {
  const { config, mission } = cell;
  const directory = agentDirectory(config, mission);
  const isFree = (session: string) => findClaimant(cell, adapter, session) === undefined;
  const reported = readHookSession(directory, readEpoch(config, mission));
  if (reported !== null && adapter.isSessionId(reported) && isFree(reported)) return reported;
  if (recorded.session !== null) return adapter.isSessionId(recorded.session) ? recorded.session : null;
  const printed = sessionInLog(adapter, cell.cellRoot);
  if (printed !== null && adapter.isSessionId(printed) && isFree(printed)) return printed;
  const found = adapter.findSessions(place, recorded.since_ms, reader).filter(adapter.isSessionId);
  return found.findLast(isFree) ?? null;
}

const LOG_BYTES = 256 * 1024;

function sessionInLog(adapter: Adapter, cell: string): string | null {
  if (adapter.sessionInOutput === undefined) return null;
  let text: string;
  try {
    const fd = openSync(join(cell, "logs", "agent.log"), "r");
    try {
      text = readRange(fd, 0, LOG_BYTES).toString("utf8");
    } finally {
      closeSync(fd);
    }
  } catch {
    return null;
  }
  return text
    .split("\n")
    .reduce<string | null>((found, line) => adapter.sessionInOutput!(line) ?? found, null);
}

function claimFile({ config }: ConversationCell, adapter: Adapter, session: string): string {
  return join(config.run_dir, "sessions", hash("sha256", `${adapter.name}\n${session}`));
}

/** The other mission that has this session. */
export function findClaimant(cell: ConversationCell, adapter: Adapter, session: string): string | undefined {
  let mission: string;
  try {
    mission = readFileSync(claimFile(cell, adapter, session), "utf8");
  } catch {
    return undefined;
  }
  if (mission === cell.mission) return undefined;
  try {
    const other = readSession(cellRoot(cell.config.missions_root, parseMissionId(mission)));
    return other?.adapter === adapter.name && other.session === session ? mission : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the other mission that has this session; undefined when it is this mission's from now on. */
export function claimSession(cell: ConversationCell, adapter: Adapter, session: string): string | undefined {
  const { disk } = cell.machine;
  const file = claimFile(cell, adapter, session);
  makeDirectory(disk, join(cell.config.run_dir, "sessions"));
  if (createFile(disk, file, cell.mission)) return undefined;
  const claimant = findClaimant(cell, adapter, session);
  if (claimant === undefined && readClaim(file) !== cell.mission) replaceFile(disk, file, cell.mission);
  return claimant;
}

function readClaim(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw error;
    return undefined;
  }
}
