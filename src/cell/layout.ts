// The layout of a cell on disk, and the seed files that other tools read. Names and fields are a fixed contract
// (docs/cells.md). Reads only where the worktree is.
import { join } from "node:path";
import type { Config } from "./config.ts";
import { cellRoot, type MissionId } from "./mission-id.ts";
import { readOutsideWorktree } from "./worktree-record.ts";

/** The paths of one cell. */
export interface CellPaths {
  readonly root: string;
  readonly missionFile: string;
  readonly configFile: string;
  readonly heartbeatFile: string;
  readonly logFile: string;
  readonly worktree: string;
  readonly artifacts: string;
}

/** The paths of a mission's cell. Its worktree may be a directory elsewhere. */
export function cellPaths(config: Config, mission: MissionId): CellPaths {
  const paths = pathsBelow(config, cellRoot(config.missions_root, mission));
  const outside = readOutsideWorktree(config.missions_root, mission);
  return outside === undefined ? paths : { ...paths, worktree: outside.path };
}

/** The paths of a complete cell at `root`. */
export function pathsBelow(config: Config, root: string): CellPaths {
  return {
    root,
    missionFile: join(root, "meta", "mission.json"),
    configFile: join(root, "config", "cell.json"),
    heartbeatFile: join(root, config.heartbeat_file),
    logFile: join(root, "logs", "daemon.log"),
    worktree: join(root, "worktree"),
    artifacts: join(root, "artifacts"),
  };
}

/** A heartbeat. Other tools may add fields, which a rewrite preserves. */
export interface Heartbeat {
  readonly mission_id: string;
  /** Epoch seconds. */
  readonly timestamp: number;
  readonly status: string;
  readonly [extra: string]: unknown;
}

export const BOOTSTRAPPED = "bootstrapped";

/** The seed files in write order: the heartbeat last, since it marks the cell as initialized. */
export function seedFiles(
  mission: MissionId,
  paths: CellPaths,
  nowSeconds: number,
): [path: string, value: unknown][] {
  return [
    [paths.missionFile, { mission_id: mission, created_at: nowSeconds, status: BOOTSTRAPPED }],
    [
      paths.configFile,
      {
        mission_id: mission,
        worktree: paths.worktree,
        artifacts: paths.artifacts,
        heartbeat_file: paths.heartbeatFile,
      },
    ],
    [paths.heartbeatFile, { mission_id: mission, timestamp: nowSeconds, status: BOOTSTRAPPED }],
  ];
}
