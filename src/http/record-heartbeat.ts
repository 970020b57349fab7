// Writes a heartbeat that arrived over HTTP. It is durable before the response is sent (one write, 1 to 2 ms). The epoch
// is checked before anything is written and again right before the rename, so that a heartbeat of an earlier life never
// lands, even if the agent is revived in between (INV-4).
import { statSync } from "node:fs";
import type { Config } from "../cell/config.ts";
import { readEpoch } from "../cell/fence.ts";
import { beat } from "../cell/heartbeat.ts";
import { cellRoot, type MissionId } from "../cell/mission-id.ts";
import type { Disk } from "../platform/disk.ts";
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
  const checkEpoch = () => refuseEarlierLife(config, mission, epoch);
  checkEpoch();
  const disk: Disk = {
    ...machine.disk,
    rename(from, to) {
      checkEpoch();
      machine.disk.rename(from, to);
    },
  };
  const { heartbeat } = beat({ ...machine, disk }, config, mission, status);
  return { mission_id: mission, timestamp: heartbeat.timestamp, durable: true };
}

function refuseUnknown(config: Config, mission: MissionId): void {
  const root = cellRoot(config.missions_root, mission);
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell at ${root}`, {
    hint: `lazarus init ${mission}`,
  });
}

/** A caller without an epoch is not fenced: it may be a script that no pit started. */
function refuseEarlierLife(config: Config, mission: MissionId, epoch: number | undefined): void {
  if (epoch === undefined) return;
  const current = readEpoch(config, mission);
  if (epoch >= current) return;
  throw new LazarusError(
    "EPOCH_FENCED",
    `the caller belongs to life ${epoch} of ${mission}, which is over; life ${current} is running`,
    { hint: `lazarus why ${mission}`, details: { mission, epoch, current } },
  );
}
