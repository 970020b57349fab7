// What a life's conversation shows about its agent. Writes nothing.
//
// Its hooks do not run if its model has responded, but no hook has reported. A CLI does not say so: Codex skips hooks whose hash it
// computes differently, and a policy of the user can disable them. The conversation is still saved and resumed; only calls that
// its transcript does not show are lost.
import { existsSync } from "node:fs";
import { findAdapter } from "../../agents/adapters.ts";
import { hasReported } from "../../agents/hook-lines.ts";
import { readPlace } from "../../agents/place.ts";
import { readSession, unsentNoteFile } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import type { MissionRecord } from "../record/record.ts";
import { newestSession, readPosition } from "./life-report.ts";

export function areHooksSilent(config: Config, record: MissionRecord): boolean {
  const { mission, life } = record;
  if (life?.conversation?.hooks !== true) return false;
  if (hasReported(agentPaths(config, mission).directory, life.epoch)) return false;
  return hasResponded(config, record);
}

/**
 * The agent shows its conversation and waits: its CLI takes no prompt when it resumes, or refused the note, and the user has not
 * typed anything yet.
 */
export function waitsForUser(config: Config, record: MissionRecord): boolean {
  const conversation = record.life?.conversation;
  if (conversation === undefined) return false;
  const waits =
    conversation.waits === true || existsSync(unsentNoteFile(agentPaths(config, record.mission).directory));
  return waits && !hasResponded(config, record);
}

/** The model has responded in this life. */
function hasResponded(config: Config, { mission, life }: MissionRecord): boolean {
  const conversation = life?.conversation;
  if (life == null || conversation === undefined) return false;
  const { directory } = agentPaths(config, mission);
  const adapter = findAdapter(conversation.adapter);
  const place = readPlace(directory);
  if (adapter === undefined || place === undefined) return false;
  const stored = readSession(cellPaths(config, parseMissionId(mission)).root)?.session;
  const session = stored ?? newestSession(adapter, place, life.started_ms);
  if (session === undefined || !adapter.isSessionId(session)) return false;
  return (readPosition(adapter, place, session)?.turn ?? 0) > conversation.turn;
}
