// Opens missions and vaults for programs that use Lazarus as a library: paths and ids are plain strings, and the machine is
// an option. Never touches the terminal, the environment or $HOME.
import type { EffectiveConfig } from "../cell/config.ts";
import { homeConfig } from "../cell/home-config.ts";
import { parseMissionId } from "../cell/mission-id.ts";
import { LazarusError, messageOf } from "../platform/errors.ts";
import { type Machine, systemMachine } from "../platform/machine.ts";
import { VERSION } from "../platform/version.ts";
import { openRegistry } from "../registry/registry.ts";
import { type MissionContext, openMissionContext, type Progress } from "./mission-context.ts";
import { type Rebuild, rebuildRegistry as rebuild } from "./operations/rebuild-registry.ts";
import { type RepairResult, repairIndex as repair } from "./vault/repair-index.ts";
import { openVault as openVaultOn, type Vault } from "./vault/vault.ts";

/** Where a mission is stored, and callbacks for progress and warnings. */
export interface OpenMissionOptions {
  /** The directory that holds cells, vaults and the registry, as in LAZARUS_HOME. */
  readonly home?: string;
  /** A loaded configuration, instead of `home`. */
  readonly config?: EffectiveConfig;
  readonly machine?: Machine;
  /** Environment variables for git. Default: none. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  onProgress?(progress: Progress): void;
  /** Called when the registry could not be updated. It is an index: `rebuildRegistry` restores it from the vaults. */
  onWarning?(warning: string): void;
}

/**
 * Opens a mission for the operations of this module.
 *
 * @example
 * const mission = openMission("fix-login", { home: "/srv/lazarus" });
 * const { ref } = await takeCheckpoint(mission, { reason: "manual", message: "before the upgrade" });
 */
export function openMission(mission: string, options: OpenMissionOptions): MissionContext {
  const { machine = systemMachine } = options;
  const config = options.config ?? (options.home === undefined ? undefined : homeConfig(options.home));
  if (config === undefined) {
    throw new LazarusError("USAGE", "openMission needs a home or a config", {
      hint: 'openMission("m", { home: "/srv/lazarus" })',
    });
  }
  return openMissionContext(machine, config, parseMissionId(mission), {
    version: VERSION,
    ...(options.environment === undefined ? {} : { environment: options.environment }),
    onProgress: (progress) => options.onProgress?.(progress),
    record(work) {
      try {
        using registry = openRegistry(machine, config.config.registry_file);
        work(registry);
      } catch (error) {
        options.onWarning?.(`the registry was not updated: ${messageOf(error)}`);
      }
    },
  });
}

/**
 * Opens the vault of a mission without its cell.
 *
 * @example const refs = openVault("/srv/lazarus/vault", "fix-login").list();
 */
export function openVault(
  vaultRoot: string,
  mission: string,
  { machine = systemMachine }: { readonly machine?: Machine } = {},
): Vault {
  return openVaultOn(machine, vaultRoot, parseMissionId(mission));
}

/**
 * Rebuilds the registry's index of checkpoints from the vaults.
 *
 * @example await rebuildRegistry(homeConfig("/srv/lazarus"));
 */
export function rebuildRegistry(
  { config }: EffectiveConfig,
  { machine = systemMachine }: { readonly machine?: Machine } = {},
): Promise<Rebuild> {
  return rebuild(machine, config);
}

/**
 * Repairs the index of a vault from its blobs.
 *
 * @example await repairIndex(openVault("/srv/lazarus/vault", "fix-login"));
 */
export function repairIndex(
  vault: Vault,
  { machine = systemMachine }: { readonly machine?: Machine } = {},
): Promise<RepairResult> {
  return repair(machine, vault);
}
