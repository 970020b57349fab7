// The informational status of a mission in its cell: `status` in meta/mission.json and the lines of logs/daemon.log,
// written when a life starts and ends. For people and other tools only: no decision depends on it, since an agent can
// change it, and a failure to write it never fails the operation.

import { existsSync, lstatSync } from "node:fs";
import { dirname } from "node:path";
import { appendLine } from "../platform/durable.ts";
import { messageOf } from "../platform/errors.ts";
import { exactNumbers, readJsonFile, writeJsonFile } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Config } from "./config.ts";
import { pathsBelow } from "./layout.ts";
import { cellRoot, type MissionId, refuseOutside } from "./mission-id.ts";

export type MissionStatus = "running" | "finished" | "stopped" | "resting" | "crashed";

/** A crash loop is bounded, but a mission may live for years. */
const LOG_LIMIT_BYTES = 1024 * 1024;

/** Returns why the cell could not be written, if so. */
export function noteMissionStatus(
  machine: Machine,
  config: Config,
  mission: MissionId,
  status: MissionStatus,
  line: string,
): string | undefined {
  const { root, missionFile, logFile } = pathsBelow(config, cellRoot(config.missions_root, mission));
  if (!existsSync(root)) return undefined;
  try {
    for (const path of [missionFile, logFile]) refuseOutside(root, dirname(path));
    const reading = readJsonFile(missionFile, undefined, exactNumbers);
    if (reading.ok && reading.value.status !== status)
      writeJsonFile(machine.disk, missionFile, { ...reading.value, status });
    const log = lstatSync(logFile, { throwIfNoEntry: false });
    const time = new Date(machine.clock.nowMs()).toISOString();
    if (log?.isFile() && log.size < LOG_LIMIT_BYTES) appendLine(machine.disk, logFile, `${time} ${line}`);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
