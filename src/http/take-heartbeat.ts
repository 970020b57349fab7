// What must be true before a heartbeat is taken: the mission has a cell, and the caller is not of an earlier life
// (INV-4). Two small looks at the disk; the write itself is the desk's.
import { statSync } from "node:fs";
import type { Config } from "../cell/config.ts";
import { readEpoch } from "../cell/fence.ts";
import { cellRoot, type MissionId } from "../cell/mission-id.ts";
import type { Clock } from "../platform/clock.ts";
import { LazarusError } from "../platform/errors.ts";
import type { HeartbeatDesk } from "./heartbeat-desk.ts";
import type { HeartbeatAnswer, HeartbeatRequest } from "./port.ts";

export async function takeHeartbeat(
  { clock, config, desk }: { readonly clock: Clock; readonly config: Config; readonly desk: HeartbeatDesk },
  mission: MissionId,
  request: HeartbeatRequest,
): Promise<HeartbeatAnswer> {
  if (!desk.knows(mission)) refuseUnknown(config, mission);
  if (request.epoch !== undefined) refuseEarlierLife(config, mission, request.epoch);
  const atMs = clock.nowMs();
  const durable = request.durable === true;
  const written = desk.accept({ mission, status: request.status, atMs });
  // Not waiting still hears of the failure of an earlier write, which the desk throws at once.
  await (durable ? written : Promise.race([written, Promise.resolve()]));
  return { mission_id: mission, timestamp: atMs / 1000, durable };
}

export function refuseUnknown(config: Config, mission: MissionId): void {
  const root = cellRoot(config.missions_root, mission);
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell at ${root}`, {
    hint: `lazarus init ${mission}`,
  });
}

function refuseEarlierLife(config: Config, mission: MissionId, epoch: number): void {
  const current = readEpoch(config, mission);
  if (epoch >= current) return;
  throw new LazarusError(
    "EPOCH_FENCED",
    `the caller belongs to life ${epoch} of ${mission}, which is over: life ${current} has begun`,
    { hint: `lazarus why ${mission}`, details: { mission, epoch, current } },
  );
}
