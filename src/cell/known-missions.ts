// Which missions exist, by the directories that belong to them: cell, vault, records of its agent. Only reads.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LazarusError } from "../platform/errors.ts";
import { nearest } from "../platform/nearest.ts";
import type { Config } from "./config.ts";
import { isMissionId, type MissionId } from "./mission-id.ts";

function listRoots({ missions_root, vault_root, run_dir }: Config): string[] {
  return [missions_root, vault_root, join(run_dir, "agents")];
}

/** Whether the mission has a cell, a vault or an agent. */
export function isKnownMission(config: Config, mission: MissionId): boolean {
  return listRoots(config).some((root) => existsSync(join(root, mission)));
}

/** The error for a mission that does not exist, with the most similar name. */
export function unknownMission(config: Config, mission: MissionId): LazarusError {
  const names = listRoots(config).flatMap((root) =>
    existsSync(root) ? readdirSync(root).filter(isMissionId) : [],
  );
  const near = nearest(mission, names);
  const question = near === undefined ? "" : `; did you mean ${near}?`;
  return new LazarusError("MISSION_UNKNOWN", `there is no mission ${mission}${question}`, {
    hint: "lazarus status, to list all missions",
    details: { mission },
  });
}
