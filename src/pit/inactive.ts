// Missions from which no heartbeat is expected, because their agents have ended as they should, or because they only protect
// a directory. For the scan: without it, a finished mission would be reported as stale forever.
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

/** A directory without an agent; once something sends heartbeats, they are expected. */
function describeIdle(config: Config, mission: MissionId): string | undefined {
  const worktree = readWorktreeRecord(config.missions_root, mission);
  if (worktree === undefined) return undefined;
  if (worktree.released_ms !== null) return "its directory was released";
  const { heartbeatFile } = pathsBelow(config, join(config.missions_root, mission));
  const reading = readJsonFile(heartbeatFile, HEARTBEAT_LIMIT_BYTES);
  const isFirst = reading.ok && reading.value.status === BOOTSTRAPPED;
  return isFirst ? "it protects a directory and has no agent" : undefined;
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
