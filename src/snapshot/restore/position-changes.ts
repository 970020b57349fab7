// Describes what a restore does to work in progress: how the positions of flows and runs change, and whether an agent
// may be running in the cell. Read-only.
import { readEpoch } from "../../cell/fence.ts";
import { HEARTBEAT_LIMIT_BYTES } from "../../cell/heartbeat.ts";
import { BOOTSTRAPPED, pathsBelow } from "../../cell/layout.ts";
import { readExitOf } from "../../cell/life.ts";
import { describeFlowMove, type FlowPosition } from "../../flow/operations/positions.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import { describeRunMove, type RunPosition } from "../../run/stores/positions.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointMetadata } from "../model/entry.ts";

type Positions = Pick<CheckpointMetadata, "flows" | "runs">;

export function describePositionChanges(before: Positions, after: Positions): string[] {
  const flows = describeFlowMove(
    before.flows as readonly FlowPosition[],
    after.flows as readonly FlowPosition[],
  );
  const runs = describeRunMove(before.runs as readonly RunPosition[], after.runs as readonly RunPosition[]);
  return runs === "" ? flows : [...flows, runs];
}

export interface FreshHeartbeat {
  readonly ageSeconds: number;
  readonly status: string;
}

/** The heartbeat, if it is so recent that an agent may be running. */
export function findFreshHeartbeat(context: MissionContext): FreshHeartbeat | undefined {
  const { config, machine } = context;
  const reading = readJsonFile(pathsBelow(config, context.cellRoot).heartbeatFile, HEARTBEAT_LIMIT_BYTES);
  if (!reading.ok) return undefined;
  const { timestamp, status } = reading.value;
  if (typeof timestamp !== "number" || status === BOOTSTRAPPED) return undefined;
  const exit = readExitOf(config, context.mission, readEpoch(config, context.mission));
  // The last one of an agent that has exited since.
  if (exit !== undefined && timestamp * 1000 <= exit.endedMs) return undefined;
  const ageSeconds = Math.max(0, machine.clock.nowMs() / 1000 - timestamp);
  if (ageSeconds > config.stale_after_seconds) return undefined;
  return { ageSeconds: Math.floor(ageSeconds), status: typeof status === "string" ? status : "alive" };
}
