// Proof of life of a mission. Rewrites keep fields that other tools added. This is the CLI's hottest path: an agent
// calls it between its steps, so it imports nothing heavy and does one durable write.
import { dirname } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Config } from "./config.ts";
import { cellPaths, type Heartbeat } from "./layout.ts";
import { type MissionId, refuseOutside } from "./mission-id.ts";

/** A heartbeat is a few hundred bytes; anything far larger is not one. */
export const HEARTBEAT_LIMIT_BYTES = 64 * 1024;

/** The heartbeat that was written. */
export interface BeatResult {
  readonly heartbeat: Heartbeat;
  readonly path: string;
  /** Seconds since the last beat; null when there was none that could be read. */
  readonly gapSeconds: number | null;
  /** Set when the file that was replaced was not a readable heartbeat. */
  readonly replaced: string | undefined;
}

export function beat(machine: Machine, config: Config, mission: MissionId, status?: string): BeatResult {
  const paths = cellPaths(config, mission);
  const path = paths.heartbeatFile;
  refuseOutside(paths.root, dirname(path));
  const reading = readJsonFile(path, HEARTBEAT_LIMIT_BYTES, exactNumbers);
  const previous = reading.ok ? reading.value : {};
  const timestamp = epochSeconds(machine.clock);
  const lastStatus = previous.status;
  const heartbeat: Heartbeat = {
    ...previous,
    mission_id: mission,
    timestamp,
    status:
      status ?? (typeof lastStatus === "string" && lastStatus !== "bootstrapped" ? lastStatus : "alive"),
  };
  try {
    writeJsonFile(machine.disk, path, heartbeat);
  } catch (error) {
    throw beatError(error, mission, path, paths.root);
  }
  const last = previous.timestamp;
  return {
    heartbeat,
    path,
    gapSeconds: typeof last === "number" ? timestamp - last : null,
    replaced: reading.ok || reading.why === "absent" ? undefined : reading.reason,
  };
}

function beatError(error: unknown, mission: MissionId, path: string, root: string): LazarusError {
  const code = systemErrorCode(error);
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell at ${root}`, {
      hint: `lazarus init ${mission}`,
    });
  }
  if (code === "EISDIR" || code === "ENOTEMPTY" || code === "EEXIST") {
    return new LazarusError("CELL_DAMAGED", `the heartbeat ${path} is a directory, not a file`, {
      hint: `look inside it, then: rmdir ${path} && lazarus heartbeat ${mission}`,
      cause: error,
    });
  }
  return asLazarusError(error, `writing the heartbeat ${path}`, root);
}
