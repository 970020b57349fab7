// Opens a mission's checkpoints for a command that needs a mission to be there already: a name that nobody knows is not
// an empty mission, and a vault that is gone is not one without checkpoints. The registry remembers what was in it.
import { existsSync, readdirSync } from "node:fs";
import { isMissionId, type MissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import { type IndexedCheckpoint, listCheckpoints } from "../registry/checkpoints.ts";
import { openRegistry } from "../registry/registry.ts";
import type { MissionContext } from "../snapshot/mission-context.ts";
import type { CliContext } from "./context.ts";
import { type CliMission, openCliMission } from "./open-mission.ts";
import { nearest } from "./suggest.ts";

export function openKnownMission(context: CliContext, mission: MissionId): CliMission {
  const missionContext = openCliMission(context, mission);
  const lost = findLost(context, missionContext);
  if (lost.length > 0) {
    throw new LazarusError("VAULT_DAMAGED", `${mission}: ${describeLost(missionContext, lost)}`, {
      hint: `ls -ld ${missionContext.vault.root}, and bring the vault back; lazarus registry rebuild forgets what was in it`,
      details: { mission, vault: missionContext.vault.root, lost: lost.map(({ id }) => id) },
    });
  }
  requireMission(context, missionContext);
  return missionContext;
}

/** Refuses a mission that has neither a cell nor a vault. */
export function requireMission(context: CliContext, { mission, cellRoot, vault }: MissionContext): void {
  if (existsSync(cellRoot) || existsSync(vault.root)) return;
  const near = nearest(mission, knownMissions(context));
  throw new LazarusError("MISSION_UNKNOWN", `there is no mission ${mission}`, {
    hint: near === undefined ? "lazarus scan lists those that have a cell" : `did you mean ${near}?`,
    details: { mission },
  });
}

/** Checkpoints that the registry knows of a mission whose vault is gone as a whole. */
export function findLost(context: CliContext, { vault, mission }: MissionContext): IndexedCheckpoint[] {
  const { registry_file } = context.config.config;
  if (existsSync(vault.root) || !existsSync(registry_file)) return [];
  try {
    using registry = openRegistry(context.machine, registry_file);
    return listCheckpoints(registry, { mission });
  } catch {
    // Whoever needs the registry says what is wrong with it.
    return [];
  }
}

export function describeLost({ vault }: MissionContext, lost: readonly IndexedCheckpoint[]): string {
  const newest = lost.at(-1)!.id;
  return `the vault ${vault.root} is gone; the registry knows of ${lost.length} checkpoints in it, the newest ${newest}`;
}

function knownMissions(context: CliContext): string[] {
  const { missions_root, vault_root } = context.config.config;
  return [missions_root, vault_root].flatMap((root) =>
    existsSync(root) ? readdirSync(root).filter(isMissionId) : [],
  );
}
