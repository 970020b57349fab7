// Missions from which no heartbeat is expected, because their agents have ended as they should, or because they only protect
// a directory or are a copy that nobody has used. For the scan: without it, a finished mission would be reported as stale forever.
import { join } from "node:path";
import type { Config } from "../cell/config.ts";
import { HEARTBEAT_LIMIT_BYTES } from "../cell/heartbeat.ts";
import { BOOTSTRAPPED, pathsBelow } from "../cell/layout.ts";
import { isKeeperAlive } from "../cell/life.ts";
import { isMissionId, type MissionId } from "../cell/mission-id.ts";
import type { InactiveLookup } from "../cell/scan.ts";
import { readWorktreeRecord } from "../cell/worktree-record.ts";
import { readJsonFile } from "../platform/json-file.ts";
import type { ReadContext } from "./context.ts";
import { type AgentState, stateOf } from "./describe.ts";
import { readRecord } from "./record/store.ts";

const REASONS: Partial<Record<AgentState, string>> = {
  finished: "its agent has finished",
  stopped: "you stopped its agent",
  resting: "you put its agent to rest",
};

/** A directory or a copy without an agent; once something sends heartbeats, they are expected. */
function describeIdle(config: Config, mission: MissionId): string | undefined {
  const worktree = readWorktreeRecord(config.missions_root, mission);
  if (worktree !== undefined && worktree.released_ms !== null) return "its directory was released";
  const { heartbeatFile, missionFile } = pathsBelow(config, join(config.missions_root, mission));
  const heartbeat = readJsonFile(heartbeatFile, HEARTBEAT_LIMIT_BYTES);
  if (!heartbeat.ok || heartbeat.value.status !== BOOTSTRAPPED) return undefined;
  if (worktree !== undefined) return "it protects a directory and has no agent";
  const meta = readJsonFile(missionFile);
  const isCopy = meta.ok && (meta.value.forked_from ?? meta.value.imported_from) !== undefined;
  return isCopy ? "it is a copy in which no agent has been started" : undefined;
}

export function createInactiveLookup({ machine, config }: ReadContext): InactiveLookup {
  return (mission) => {
    if (!isMissionId(mission)) return undefined;
    try {
      const record = readRecord(config, mission);
      const state = stateOf(record, isKeeperAlive(machine.processes, config, mission));
      return REASONS[state] ?? (state === "none" ? describeIdle(config, mission) : undefined);
    } catch {
      // A damaged record is no evidence; `status` reports it.
      return undefined;
    }
  };
}
