// What the pit's operations need, opened once by the daemon or by a command: machine, config, registry, settings, locks.
// A registry that cannot be written never fails an operation.
import type { EventEmitter } from "node:events";
import { resolve } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import type { Config, EffectiveConfig } from "../cell/config.ts";
import { cellPaths } from "../cell/layout.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { lockMission, lockMissionAfterStop } from "../cell/mission-lock.ts";
import { type MissionStatus, noteMissionStatus } from "../cell/mission-status.ts";
import { readJsonFile } from "../platform/json-file.ts";
import type { Lock } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import type { EventChannels, NewEvent, Registry } from "../registry/registry.ts";
import { type MissionContext, openMissionContext } from "../snapshot/mission-context.ts";
import type { DirtySet } from "../snapshot/model/dirty-set.ts";
import {
  type CheckpointOptions,
  type CheckpointResult,
  takeCheckpoint,
} from "../snapshot/operations/checkpoint.ts";
import { createSlots, type Slots } from "../snapshot/slots.ts";
import { CheckpointProcesses } from "./checkpoint/process-pool.ts";
import { applyCell } from "./narrow.ts";
import { createRegistryAccess } from "./registry-access.ts";
import { createReloadableConfig } from "./reload-config.ts";
import { type Grants, grantedValues, type PitSettings, toSettings } from "./settings.ts";

export interface PitContext extends Disposable {
  readonly machine: Machine;
  /** The last value that was read. */
  readonly effective: EffectiveConfig;
  /** Never changes. */
  readonly config: Config;
  /** Reads the settings again, where they can be; `listener`s are called when they have changed. */
  reloadConfig(): boolean;
  onReload(listener: () => void): void;
  readonly version: string;
  /** Passed to agents and to git. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** LAZARUS_HOME as an absolute path; undefined when it is not set. */
  readonly home: string | undefined;
  /** The agent CLIs that are known: those of the config first. */
  readonly adapters: readonly Adapter[];
  /** The command line that starts `lazarus`, for the hooks of agents; undefined in a program that embeds the pit. */
  readonly program: readonly string[] | undefined;
  log(line: string): void;
  /** Appends an event to the registry and emits it to listeners in this process. */
  recordEvent(event: NewEvent): void;
  /** Emits `event` for each recorded event, and `unrecorded` for one that the registry could not take. */
  readonly events: EventEmitter<EventChannels>;
  /** Opened on first use; undefined when it cannot be opened. */
  registry(): Registry | undefined;
  openMission(mission: MissionId): MissionContext;
  /** Takes a checkpoint and records it. */
  takeCheckpoint(mission: MissionId, options: CheckpointOptions): Promise<CheckpointResult>;
  /** Held while a keeper starts. */
  readonly startSlots: Slots;
  /** What the user granted, narrowed by what the cell asks for (INV-11). Warns once about each key that is ignored. */
  settings(record: Grants): PitSettings;
  /** Held while a record is written; see src/cell/mission-lock.ts. */
  lockMission(mission: MissionId, purpose: string): Promise<Lock>;
  /** Held until a start or revival is done; waits for a stop that is under way. */
  lockMissionAfterStop(mission: MissionId, purpose: string): Promise<Lock>;
}

/** What reading needs: views and post-mortems work without the rest. */
export type ReadContext = Pick<PitContext, "machine" | "config">;

export interface PitContextOptions {
  readonly machine: Machine;
  readonly effective: EffectiveConfig;
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Reads the configuration again; default: it never changes. */
  readonly readConfig?: () => EffectiveConfig;
  /** Default: none, and agents run without hooks. */
  readonly program?: readonly string[];
  /**
   * Checkpoints that walk a cell or hold many changes are taken by other processes, which use the system's machine: for a program
   * that runs for long.
   * Default: in this process.
   */
  readonly usesProcesses?: boolean;
  log(line: string): void;
  warn(line: string): void;
}

/** Checkpoints at the same time: one already uses all cores. */
const CHECKPOINT_SLOTS = 4;
/**
 * Processes for checkpoints at the same time: each needs hundreds of megabytes, however long it takes. More than slots, so that
 * missions with a slow disk do not keep others waiting.
 */
const CHECKPOINT_PROCESSES = 8;
/** Keepers that start at the same time. */
const START_SLOTS = 8;
/** A slot that is held for longer no longer counts, so that no other mission waits for it. */
const SLOT_MS = 30_000;

/** A set that names more than this, such as after `npm install`, needs so much memory that another process takes the checkpoint. */
const SMALL_SET = 100;

/** In this process, where its stat store stays open, a checkpoint of a few changes takes milliseconds. */
function isSmall(dirty: DirtySet | undefined): boolean {
  return dirty !== undefined && dirty.paths.size + dirty.trees.size <= SMALL_SET;
}

export function openPitContext(options: PitContextOptions): PitContext {
  const { machine, environment } = options;
  const current = createReloadableConfig(options.effective, options.readConfig, options.log);
  const { config } = current.effective;
  const slots = createSlots(machine.clock, CHECKPOINT_SLOTS, SLOT_MS);
  const processSlots = createSlots(machine.clock, CHECKPOINT_PROCESSES);
  const warned = new Set<string>();
  // A daemon retries for days: log each warning once.
  const warnOnce = (line: string, id = line) => {
    if (warned.has(id)) return;
    warned.add(id);
    options.warn(line);
  };
  const registry = createRegistryAccess(machine, config, warnOnce);
  const processes = new CheckpointProcesses(machine.clock, {
    onEvent: (event) => registry.events.emit("event", event),
    onWarning: warnOnce,
  });
  const settings = (record: Grants): PitSettings => {
    const { document, file } = current.effective;
    const granted = grantedValues(document, file, record);
    const { configFile } = cellPaths(config, record.mission as MissionId);
    const { values, warnings } = applyCell(granted, record.mission, configFile, readJsonFile(configFile));
    for (const [key, line] of Object.entries(warnings)) warnOnce(line, `${configFile} ${key}`);
    return toSettings(values);
  };
  const openMission = (mission: MissionId) =>
    openMissionContext(machine, current.effective, mission, {
      version: options.version,
      environment,
      record: registry.record,
      slots,
    });
  return {
    machine,
    get effective() {
      return current.effective;
    },
    config,
    reloadConfig: current.reload,
    onReload: current.onReload,
    version: options.version,
    environment,
    home: environment.LAZARUS_HOME ? resolve(options.cwd, environment.LAZARUS_HOME) : undefined,
    get adapters() {
      return current.adapters;
    },
    program: options.program,
    log: options.log,
    events: registry.events,
    registry: registry.open,
    recordEvent: registry.recordEvent,
    startSlots: createSlots(machine.clock, START_SLOTS, SLOT_MS),
    openMission,
    async takeCheckpoint(mission, checkpoint) {
      if (options.usesProcesses === true && !isSmall(checkpoint.dirty)) {
        // In this order, since a slot expires: a checkpoint that waits for a process must not use one up.
        using _process = await processSlots.acquire();
        using _ = await slots.acquire();
        const { effective } = current;
        const { version } = options;
        const request = { effective, mission, options: checkpoint, version, environment };
        const result = await processes.take(request);
        if (result !== undefined) return result;
        warnOnce("cannot start a process for a checkpoint, so the pit takes it itself; try: lazarus doctor");
      }
      return await takeCheckpoint(openMission(mission), checkpoint);
    },
    settings,
    lockMission: (mission, purpose) => lockMission(machine, config, mission, purpose),
    lockMissionAfterStop: (mission, purpose) => lockMissionAfterStop(machine, config, mission, purpose),
    [Symbol.dispose]() {
      processes[Symbol.dispose]();
      registry[Symbol.dispose]();
    },
  };
}

/** Writes the informational status into the cell; a failure is logged. */
export function noteStatus(
  { machine, config, log }: Pick<PitContext, "machine" | "config" | "log">,
  mission: string,
  status: MissionStatus,
  line: string,
): void {
  const problem = noteMissionStatus(machine, config, mission as MissionId, status, line);
  if (problem !== undefined) log(`${mission}: cannot write its status to the cell: ${problem}`);
}
