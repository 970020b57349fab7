// Describes what a restore does to work in progress: how the positions of flows and runs change, and whether an agent
// may be running in the cell. Read-only.
import type { ConversationPosition } from "../../agents/conversation/cell.ts";
import { turnText } from "../../agents/conversation/position.ts";
import { readEpoch } from "../../cell/fence.ts";
import { HEARTBEAT_LIMIT_BYTES } from "../../cell/heartbeat.ts";
import { BOOTSTRAPPED, pathsBelow } from "../../cell/layout.ts";
import { readExitOf } from "../../cell/life.ts";
import { describeFlowMove, type FlowPosition } from "../../flow/operations/positions.ts";
import { readJsonFile } from "../../platform/json-file.ts";
import { describeRunMove, type RunPosition } from "../../run/store/positions.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointMetadata } from "../model/entry.ts";
import { coversConversation, type Scope } from "./scope.ts";

type Positions = Pick<CheckpointMetadata, "flows" | "runs" | "conversation">;

/** Flows and runs count only when the whole cell is restored. */
export function describeMoves(before: Positions, after: Positions, scope: Scope): string[] {
  return [
    ...(scope.only === undefined ? describePositionChanges(before, after) : []),
    ...(coversConversation(scope) ? describeConversationMove(before.conversation, after.conversation) : []),
  ];
}

function describeConversationMove(
  before: ConversationPosition | undefined,
  after: ConversationPosition | undefined,
): string[] {
  if (after === undefined)
    return before === undefined ? [] : ["the conversation is removed: it is not in the checkpoint"];
  const at = turnText(after);
  if (before?.session !== after.session) return [`the conversation is restored at ${at}`];
  if (turnText(before) === at) return [];
  const direction = before.turn >= after.turn ? "goes back" : "goes forward";
  return [`the conversation ${direction} from ${turnText(before)} to ${at}`];
}

function describePositionChanges(before: Positions, after: Positions): string[] {
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
