// Why an agent cannot be started although it should be: its cell or its working directory is missing.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import { commandsForMissingCell } from "../describe.ts";
import type { MissionRecord } from "../record/record.ts";

/** Hint for a mission whose cell is gone. */
export function bringBackHint(config: Config, mission: string): string {
  const hasCheckpoint = existsSync(join(config.vault_root, mission, "index.json"));
  return commandsForMissingCell(mission, hasCheckpoint).join(", then: ");
}

export interface Obstacle {
  readonly reason: string;
  readonly hint: string;
}

/** Undefined when the agent can be started. */
export function findObstacle(config: Config, record: MissionRecord): Obstacle | undefined {
  const { mission } = record;
  const cell = cellPaths(config, parseMissionId(mission));
  const restore = bringBackHint(config, mission);
  if (!existsSync(cell.root)) return { reason: `its cell ${cell.root} is gone`, hint: restore };
  const directory = record.cwd ?? cell.worktree;
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return undefined;
  return {
    reason: `its working directory ${directory} does not exist`,
    hint: record.cwd === null ? restore : `mkdir -p ${directory}, then: lazarus revive ${mission}`,
  };
}
