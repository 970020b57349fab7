// Rebuilds the registry's checkpoint index from the vaults, repairing damaged vault indexes first. The event log is
// not touched: it exists nowhere else.
import { existsSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../cell/config.ts";
import { isMissionId } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { timeOrderedId } from "../../platform/ids.ts";
import type { Machine } from "../../platform/machine.ts";
import { type CheckpointRow, indexedMissions, replaceCheckpoints } from "../../registry/checkpoints.ts";
import { openRegistry, type Registry } from "../../registry/registry.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { repairIndex } from "../vault/repair-index.ts";
import { openVault } from "../vault/vault.ts";
import { checkpointRow } from "./record.ts";

export interface RebuiltMission {
  readonly mission: string;
  readonly checkpoints: number;
  /** Ids that the index names but whose manifest or config cannot be read. */
  readonly unreadable: readonly string[];
  /** The problem with the vault's index that was repaired, and where the damaged file is kept. */
  readonly repaired: string | null;
  readonly keptAt: string | null;
}

/** What a rebuild of the registry found. */
export interface Rebuild {
  readonly missions: readonly RebuiltMission[];
  /** Where an unreadable registry was moved; null when it could be read. */
  readonly movedAside: string | null;
}

export async function rebuildRegistry(machine: Machine, config: Config): Promise<Rebuild> {
  const { registry, movedAside } = openOrReplace(machine, config.registry_file);
  using open = registry;
  const missions: RebuiltMission[] = [];
  for (const mission of listVaults(config.vault_root)) {
    missions.push(await rebuildMission(machine, open, config.vault_root, mission));
  }
  const present = new Set(missions.map(({ mission }) => mission));
  for (const mission of indexedMissions(open))
    if (!present.has(mission)) replaceCheckpoints(open, mission, []);
  return { missions, movedAside };
}

async function rebuildMission(
  machine: Machine,
  registry: Registry,
  vaultRoot: string,
  mission: string,
): Promise<RebuiltMission> {
  const vault = openVault(machine, vaultRoot, mission);
  const { refs, repaired, keptAt } = await repairIndex(machine, vault);
  const rows: CheckpointRow[] = [];
  const unreadable: string[] = [];
  for (const ref of refs) {
    try {
      rows.push(checkpointRow(mission, ref, readCheckpoint(vault, ref).metadata));
    } catch (error) {
      if (!(error instanceof LazarusError)) throw error;
      unreadable.push(ref.id);
    }
  }
  replaceCheckpoints(registry, mission, rows);
  return { mission, checkpoints: rows.length, unreadable, repaired, keptAt };
}

/** Missions that have a vault, by name. */
export function listVaults(vaultRoot: string): string[] {
  if (!existsSync(vaultRoot)) return [];
  return readdirSync(vaultRoot)
    .filter((name) => isMissionId(name) && existsSync(join(vaultRoot, name, "blobs")))
    .sort();
}

/** An unreadable registry is moved, never deleted: its event log may be recoverable. */
function openOrReplace(machine: Machine, file: string): { registry: Registry; movedAside: string | null } {
  try {
    return { registry: openRegistry(machine, file), movedAside: null };
  } catch (error) {
    if (!(error instanceof LazarusError) || error.code !== "REGISTRY_DAMAGED") throw error;
    const movedAside = `${file}.damaged-${timeOrderedId(machine.clock.nowMs(), machine.ids)}`;
    renameSync(file, movedAside);
    for (const suffix of ["-wal", "-shm"])
      if (existsSync(file + suffix)) renameSync(file + suffix, movedAside + suffix);
    return { registry: openRegistry(machine, file), movedAside };
  }
}
