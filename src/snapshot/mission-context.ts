// The context of every operation on a mission's checkpoints: machine, config, settings, cell and vault.
import { existsSync, lstatSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { findAdapter } from "../agents/adapters.ts";
import { declaredAdapters } from "../agents/declared.ts";
import type { Config, EffectiveConfig } from "../cell/config.ts";
import { cellRoot, isInside, type MissionId } from "../cell/mission-id.ts";
import { readWorktreeRecord, type WorktreeRecord } from "../cell/worktree-record.ts";
import { type EffectHistory, openHistory } from "../effects/history.ts";
import { LazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import type { Registry } from "../registry/registry.ts";
import type { TreeRoot } from "./model/cell-tree.ts";
import { readSettings, type SnapshotSettings } from "./settings.ts";
import type { Slots } from "./slots.ts";
import { openVault, type Vault } from "./vault/vault.ts";
import { treeOf } from "./worktree.ts";

/** Where the files of a mission are. */
export interface CellPlace {
  readonly cellRoot: string;
  /** The cell's paths on disk: `cellRoot`, unless the worktree is elsewhere. */
  readonly tree: TreeRoot;
  /** Set for a worktree that is, or was, a directory outside the cell. */
  readonly worktree: WorktreeRecord | undefined;
}

/** One open mission: its cell, vault, settings and machine. */
export interface MissionContext extends CellPlace {
  readonly machine: Machine;
  readonly config: Config;
  readonly settings: SnapshotSettings;
  readonly mission: MissionId;
  readonly vault: Vault;
  /** What the mission did to the outside world; never restored. */
  readonly effects: EffectHistory;
  /** Can be deleted at any time: stat store, private git index. */
  readonly cacheDirectory: string;
  /** Version of Lazarus, for the metadata. */
  readonly version: string;
  readonly onProgress: (progress: Progress) => void;
  /** The part of the caller's environment that git sees. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /**
   * Runs `work` on the registry, in one transaction. Never throws: the registry is a cache, and a failed write is reported,
   * not fatal.
   */
  readonly record: (work: (registry: RegistryWriter) => void) => void;
  /** What is known about an agent CLI, by the name that session.json gives. */
  readonly findAdapter: (name: string) => Adapter | undefined;
  /** Held during heavy work, where one process works on many missions. Taken last, after all locks. */
  readonly slots?: Slots | undefined;
}

export type RegistryWriter = Pick<Registry, "database" | "append">;

/** Progress of an operation. */
export interface Progress {
  /** "storing", "restoring", "verifying" … */
  readonly phase: string;
  readonly done: number;
  readonly total: number;
  readonly unit: "files" | "bytes";
}

export interface MissionContextOptions {
  readonly version: string;
  readonly onProgress?: (progress: Progress) => void;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Default: nothing is recorded; `rebuildRegistry` fills the index from the vaults. */
  readonly record?: MissionContext["record"];
  readonly slots?: Slots;
  /** Default: the built-in adapters and those that the config declares. */
  readonly findAdapter?: MissionContext["findAdapter"];
}

export function openMissionContext(
  machine: Machine,
  effective: EffectiveConfig,
  mission: MissionId,
  options: MissionContextOptions,
): MissionContext {
  const { config } = effective;
  const place = findCell(config, mission);
  const vault = openVault(machine, config.vault_root, mission);
  refuseOverlap(place.cellRoot, vault.root);
  return {
    ...place,
    machine,
    config,
    settings: readSettings(effective.document, effective.file),
    mission,
    vault,
    effects: openHistory(machine, place.cellRoot),
    cacheDirectory: join(config.run_dir, "cache", mission),
    version: options.version,
    onProgress: options.onProgress ?? (() => {}),
    environment: options.environment ?? {},
    record: options.record ?? (() => {}),
    findAdapter:
      options.findAdapter ??
      ((name) => findAdapter(name, declaredAdapters(effective.document, effective.file))),
    slots: options.slots,
  };
}

export function findCell(config: Config, mission: MissionId): CellPlace {
  const place = cellRoot(config.missions_root, mission);
  // A cell may be a link within the missions root: then its target is saved and restored.
  const isLink = lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  const root = isLink ? resolvePath(place) : place;
  const worktree = readWorktreeRecord(config.missions_root, mission);
  return { cellRoot: root, tree: treeOf(root, worktree), worktree };
}

/** The same mission with its whole cell in another directory, as while it is being made. */
export function placedAt(context: MissionContext, cell: string): MissionContext {
  return { ...context, cellRoot: cell, tree: cell, worktree: undefined };
}

/** Refuses a mission whose cell is gone. */
export function requireCell({ mission, cellRoot: root, vault }: MissionContext): void {
  if (existsSync(root)) return;
  throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell at ${root}`, {
    hint:
      vault.list().length > 0
        ? `lazarus restore ${mission}, to bring it back from its vault`
        : `lazarus init ${mission}`,
  });
}

/** The real path, with links resolved as far as the path exists. */
export function resolvePath(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(resolvePath(parent), basename(path));
  }
}

/** A vault inside its cell would capture itself; a cell inside its vault would be pruned. */
function refuseOverlap(cell: string, vault: string): void {
  const [real, kept] = [resolvePath(cell), resolvePath(vault)];
  if (real !== kept && !isInside(real, kept) && !isInside(kept, real)) return;
  throw new LazarusError("VAULT_MISPLACED", `the vault ${vault} and the cell ${cell} overlap`, {
    hint: "set vault_root to a directory outside missions_root, then: lazarus config",
  });
}
