// A checkpoint that the command takes itself, by walking the cell. Loaded only when no pit takes it.
import { setFlagsFromString } from "node:v8";
import type { MissionId } from "../../../cell/mission-id.ts";
import type { Reason } from "../../../snapshot/model/entry.ts";
import {
  type CheckpointReport,
  reportCheckpoint,
  takeCheckpoint,
} from "../../../snapshot/operations/checkpoint.ts";
import type { CheckpointRequest } from "../../ask-pit.ts";
import type { CliContext } from "../../context.ts";
import { describeLost, findLost, openCliMission } from "../../open-mission.ts";

export async function takeOwnCheckpoint(
  context: CliContext,
  mission: MissionId,
  { reason, message, agent }: CheckpointRequest,
): Promise<CheckpointReport> {
  // A checkpoint keeps nearly all that it allocates, and V8 would add 100 MB to the young generation for it.
  setFlagsFromString("--semi-space-growth-factor=1");
  using missionContext = openCliMission(context, mission);
  const lost = findLost(context, missionContext);
  if (lost.length > 0)
    context.warn(`${describeLost(missionContext, lost)}; this checkpoint starts a new vault`);
  const result = await takeCheckpoint(missionContext, { reason: reason as Reason, message, agent });
  missionContext.endProgress();
  return reportCheckpoint(result);
}
