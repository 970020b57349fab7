// Whether the hooks that a life was started with are not being run: its model has responded, but no hook has reported. A CLI does not say
// so: Codex skips hooks whose hash it computes differently, and a policy of the user can disable them. The conversation is
// still saved and resumed; only calls that its transcript does not show are lost. Writes nothing.
import { findAdapter } from "../../agents/adapters.ts";
import { hasReported } from "../../agents/hook-lines.ts";
import { readPlace } from "../../agents/place.ts";
import { readSession } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import type { MissionRecord } from "../record/record.ts";
import { newestSession, readPosition } from "./life-report.ts";

export function areHooksSilent(config: Config, { mission, life }: MissionRecord): boolean {
  const conversation = life?.conversation;
  if (life == null || conversation?.hooks !== true) return false;
  const { directory } = agentPaths(config, mission);
  if (hasReported(directory, life.epoch)) return false;
  const adapter = findAdapter(conversation.adapter);
  const place = readPlace(directory);
  if (adapter === undefined || place === undefined) return false;
  const stored = readSession(cellPaths(config, parseMissionId(mission)).root)?.session;
  const session = stored ?? newestSession(adapter, place, life.started_ms);
  if (session === undefined || !adapter.isSessionId(session)) return false;
  return (readPosition(adapter, place, session)?.turn ?? 0) > conversation.turn;
}
