// Missions from which no heartbeat is expected, because their agents have ended as they should. For the scan: without it, a
// finished mission would be reported as stale forever.
import { isKeeperAlive } from "../cell/life.ts";
import { isMissionId } from "../cell/mission-id.ts";
import type { InactiveLookup } from "../cell/scan.ts";
import type { ReadContext } from "./context.ts";
import { type AgentState, stateOf } from "./describe.ts";
import { readRecord } from "./record/store.ts";

const REASONS: Partial<Record<AgentState, string>> = {
  finished: "its agent has finished",
  stopped: "you stopped its agent",
  resting: "you put its agent to rest",
};

export function createInactiveLookup({ machine, config }: ReadContext): InactiveLookup {
  return (mission) => {
    if (!isMissionId(mission)) return undefined;
    try {
      const record = readRecord(config, mission);
      return REASONS[stateOf(record, isKeeperAlive(machine.processes, config, mission))];
    } catch {
      // A damaged record says nothing; `status` reports it.
      return undefined;
    }
  };
}
