// Opens a mission's checkpoints for a command, with a progress bar on a terminal. Commands that need an existing mission
// use `openKnownMission`: an unknown id is an error, not an empty mission, and so is a vault that is missing although
// the registry lists checkpoints in it.

import { existsSync } from "node:fs";
import { agentDirectory } from "../cell/fence.ts";
import { unknownMission } from "../cell/known-missions.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { LazarusError, messageOf } from "../platform/errors.ts";
import { inTransaction } from "../platform/sqlite.ts";
import { VERSION } from "../platform/version.ts";
import { type IndexedCheckpoint, listCheckpoints } from "../registry/checkpoints.ts";
import { openRegistry } from "../registry/registry.ts";
import { type MissionContext, openMissionContext } from "../snapshot/mission-context.ts";
import type { CliContext } from "./context.ts";
import { formatCount } from "./render/format.ts";
import { createProgressBar } from "./render/progress.ts";

export interface CliMission extends MissionContext, Disposable {
  /** Clears the progress bar. */
  endProgress(): void;
}

export function openCliMission(context: CliContext, mission: MissionId): CliMission {
  const { terminal, machine, globals } = context;
  const bar = createProgressBar({ terminal, clock: machine.clock, globals });
  const missionContext = openMissionContext(machine, context.config, mission, {
    version: VERSION,
    environment: context.surroundings.env,
    onProgress: (progress) => bar.show(progress),
    record: (work) => updateRegistry(context, work),
  });
  return { ...missionContext, endProgress: () => bar.end(), [Symbol.dispose]: () => bar.end() };
}

function updateRegistry(context: CliContext, work: Parameters<MissionContext["record"]>[0]): void {
  try {
    using registry = openRegistry(context.machine, context.config.config.registry_file);
    inTransaction(registry.database, () => work(registry));
  } catch (error) {
    context.warn(`the registry was not written: ${messageOf(error)}; try: lazarus registry rebuild`);
  }
}

export function openKnownMission(context: CliContext, mission: MissionId): CliMission {
  const missionContext = openCliMission(context, mission);
  refuseLostVault(context, missionContext);
  requireMission(context, missionContext);
  return missionContext;
}

/** Its disk may not be mounted. */
export function refuseLostVault(context: CliContext, missionContext: MissionContext): void {
  const lost = findLost(context, missionContext);
  if (lost.length === 0) return;
  const { mission, vault } = missionContext;
  throw new LazarusError("VAULT_DAMAGED", `${mission}: ${describeLost(missionContext, lost)}`, {
    hint: `ls -ld ${vault.root}, and restore the vault directory; or drop its checkpoints: lazarus registry rebuild`,
    details: { mission, vault: vault.root, lost: lost.map(({ id }) => id) },
  });
}

/** Refuses a mission that has neither a cell nor a vault. */
export function requireMission(context: CliContext, { mission, cellRoot, vault }: MissionContext): void {
  if (existsSync(cellRoot) || existsSync(vault.root)) return;
  if (existsSync(agentDirectory(context.config.config, mission)))
    throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell and no checkpoints`, {
      hint: `lazarus run ${mission} -- COMMAND, to start over`,
      details: { mission },
    });
  throw unknownMission(context.config.config, mission);
}

/** Checkpoints that the registry lists for a mission whose vault directory does not exist. */
export function findLost(context: CliContext, { vault, mission }: MissionContext): IndexedCheckpoint[] {
  const { registry_file } = context.config.config;
  if (existsSync(vault.root) || !existsSync(registry_file)) return [];
  try {
    using registry = openRegistry(context.machine, registry_file);
    return listCheckpoints(registry, { mission });
  } catch {
    // A command that needs the registry reports the error itself.
    return [];
  }
}

export function describeLost({ vault }: MissionContext, lost: readonly IndexedCheckpoint[]): string {
  const newest = lost.at(-1)!.id;
  return `the vault ${vault.root} is missing; the registry lists ${formatCount(lost.length, "checkpoint")} in it, the newest ${newest}`;
}
