// Writes the heartbeat of a mission and keeps fields that other tools added: the one write path of the CLI, HTTP and the
// library. This is the hottest path of the CLI: agents call it between steps, so it imports nothing heavy and does one
// durable write. The epoch is checked between the temporary file and the rename; see fence.ts (INV-4).
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { epochSeconds } from "../platform/clock.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Config } from "./config.ts";
import { refuseEarlierLife } from "./fence.ts";
import { type Heartbeat, pathsBelow } from "./layout.ts";
import { cellRoot, type MissionId, refuseOutside } from "./mission-id.ts";

/** A heartbeat has a few hundred bytes; anything much larger is not one. */
export const HEARTBEAT_LIMIT_BYTES = 64 * 1024;

/** The heartbeat that was written. */
export interface BeatResult {
  readonly heartbeat: Heartbeat;
  readonly path: string;
  /** Seconds since the previous heartbeat; null if there was none or it is unreadable. */
  readonly gapSeconds: number | null;
  /** Why the replaced file was not a valid heartbeat, if so. */
  readonly replaced: string | undefined;
}

/** What a heartbeat says, and for which life. */
export interface BeatRequest {
  /** Kept from the previous heartbeat if absent. */
  readonly status?: string | undefined;
  /** The life that the caller belongs to; a heartbeat of an earlier life is refused. */
  readonly epoch?: number | undefined;
}

/** A write that was cancelled because a new life started is tried again; more lives do not start in the meantime. */
const ATTEMPTS = 3;

export function beat(
  machine: Machine,
  config: Config,
  mission: MissionId,
  { status, epoch }: BeatRequest = {},
): BeatResult {
  const checkEpoch = () => refuseEarlierLife(config, mission, epoch);
  checkEpoch();
  for (let attempt = 1; ; attempt += 1) {
    const written = tryBeat(machine, config, mission, { status, checkEpoch, last: attempt === ATTEMPTS });
    if (written !== undefined) return written;
  }
}

interface Attempt {
  readonly status: string | undefined;
  checkEpoch(): void;
  readonly last: boolean;
}

/** Undefined when the write was cancelled. */
function tryBeat(
  machine: Machine,
  config: Config,
  mission: MissionId,
  { status, checkEpoch, last: isLast }: Attempt,
): BeatResult | undefined {
  const paths = pathsBelow(config, cellRoot(config.missions_root, mission));
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
    writeJsonFile(machine.disk, path, heartbeat, { beforeRename: checkEpoch });
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT" && !isLast && existsSync(dirname(path))) return undefined;
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
      hint: `ls -la ${path}, then: rmdir ${path} && lazarus heartbeat ${mission}`,
      cause: error,
    });
  }
  return asLazarusError(error, `writing the heartbeat ${path}`, root);
}
