// The lock of a mission: held by every operation that changes its agent or its cell as a whole, so that no two of them run
// at once (INV-4). A kernel lock, released when its holder dies.
import { makeDirectory } from "../platform/durable.ts";
import { acquireLock, type Lock } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import { agentPaths } from "./agent-paths.ts";
import type { Config } from "./config.ts";
import type { MissionId } from "./mission-id.ts";

const LOCK_WAIT_MS = 120_000;

export function lockMission(
  machine: Machine,
  config: Config,
  mission: MissionId,
  purpose: string,
  waitMs = LOCK_WAIT_MS,
): Promise<Lock> {
  const paths = agentPaths(config, mission);
  makeDirectory(machine.disk, paths.directory);
  return acquireLock(machine, paths.lock, { purpose, waitMs });
}
