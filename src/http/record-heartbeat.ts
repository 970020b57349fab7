// Writes a heartbeat that arrived over HTTP. It is durable before the response is sent (one write, 1 to 2 ms); one of an
// earlier life never lands (INV-4).
import { statSync } from "node:fs";
import type { Config } from "../cell/config.ts";
import { beat } from "../cell/heartbeat.ts";
import { cellRoot, type MissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import type { HeartbeatAnswer, HeartbeatRequest } from "./port.ts";

export function recordHeartbeat(
  machine: Machine,
  config: Config,
  mission: MissionId,
  { status, epoch }: HeartbeatRequest,
): HeartbeatAnswer {
  refuseUnknown(config, mission);
  const { heartbeat } = beat(machine, config, mission, { status, epoch });
  return { mission_id: mission, timestamp: heartbeat.timestamp, durable: true };
}

function refuseUnknown(config: Config, mission: MissionId): void {
  const root = cellRoot(config.missions_root, mission);
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell at ${root}`, {
    hint: `lazarus init ${mission}`,
  });
}
