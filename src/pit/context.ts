// What every act of the pit works with, gathered once, whether the daemon or a command acts. The registry is told of each
// event; that it cannot be written never stops an act.
import { EventEmitter } from "node:events";
import { resolve } from "node:path";
import type { Config, EffectiveConfig } from "../cell/config.ts";
import { cellPaths } from "../cell/layout.ts";
import { type MissionId, parseMissionId } from "../cell/mission-id.ts";
import { makeDirectory } from "../platform/durable.ts";
import { LazarusError } from "../platform/errors.ts";
import { readJsonFile } from "../platform/json-file.ts";
import { acquireLock, type Lock } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import { type Event, type NewEvent, openRegistry, type Registry } from "../registry/registry.ts";
import { type MissionContext, openMissionContext } from "../snapshot/mission-context.ts";
import { agentPlaces } from "./record/store.ts";
import { type PitSettings, pitSettings, type SettingsSource } from "./settings.ts";

export interface Hands extends Disposable {
  readonly machine: Machine;
  readonly effective: EffectiveConfig;
  readonly config: Config;
  readonly version: string;
  /** Handed on to agents and to git. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** LAZARUS_HOME as a whole path, when it is set. */
  readonly home: string | undefined;
  /** A line for whoever watches. */
  say(line: string): void;
  /** Enters an event in the registry and tells listeners in this process. */
  tell(event: NewEvent): void;
  /** Emits `event` for each event told. */
  readonly events: EventEmitter<{ event: [Event] }>;
  registry(): Registry | undefined;
  missionOf(text: string): MissionId;
  openMission(mission: MissionId): MissionContext;
  settings(mission: MissionId, agent: string | undefined): PitSettings;
  /** One who acts on a mission at a time, on this machine. */
  lock(mission: MissionId, purpose: string, waitMs?: number): Promise<Lock>;
}

export interface HandsOptions {
  readonly machine: Machine;
  readonly effective: EffectiveConfig;
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  say(line: string): void;
  warn(line: string): void;
}

const LOCK_WAIT_MS = 120_000;

export function openHands(options: HandsOptions): Hands {
  const { machine, effective, environment } = options;
  const { config } = effective;
  const events = new EventEmitter<{ event: [Event] }>();
  events.setMaxListeners(0);
  let registry: Registry | undefined;
  const warned = new Set<string>();
  /** A daemon asks again and again; what stays wrong is said once. */
  const warnOnce = (line: string) => {
    if (warned.has(line)) return;
    warned.add(line);
    options.warn(line);
  };
  const openOnce = (): Registry | undefined => {
    try {
      registry ??= openRegistry(machine, config.registry_file);
    } catch (error) {
      warnOnce(`the registry cannot be used: ${words(error)}; try: lazarus registry rebuild`);
    }
    return registry;
  };
  const cellSection = (mission: MissionId): SettingsSource => {
    const path = cellPaths(config, mission).configFile;
    const reading = readJsonFile(path);
    if (!reading.ok && reading.why !== "absent")
      throw new LazarusError("CONFIG_INVALID", `${path}: ${reading.reason}`, { hint: `look at ${path}` });
    return { section: reading.ok ? reading.value.pit : undefined, where: `${path}: pit` };
  };
  /** A cell lies open to its agent: what is wrong there must not keep a human from ending it, nor revive it unasked. */
  const settings = (mission: MissionId, agent: string | undefined): PitSettings => {
    const { document, file } = effective;
    try {
      return pitSettings(document, file, agent, cellSection(mission));
    } catch (error) {
      const rest = pitSettings(document, file, agent);
      warnOnce(`${words(error)}; until it is mended nothing of this section is used, and revive is ask`);
      return { ...rest, revive: "ask" };
    }
  };
  return {
    machine,
    effective,
    config,
    version: options.version,
    environment,
    home: environment.LAZARUS_HOME ? resolve(options.cwd, environment.LAZARUS_HOME) : undefined,
    say: options.say,
    events,
    registry: openOnce,
    missionOf: parseMissionId,
    tell(event) {
      try {
        const entered = openOnce()?.append(event);
        if (entered !== undefined) events.emit("event", entered);
      } catch (error) {
        warnOnce(`the event log was not written: ${words(error)}`);
      }
    },
    openMission: (mission) =>
      openMissionContext(machine, effective, mission, { version: options.version, environment }),
    settings,
    lock(mission, purpose, waitMs = LOCK_WAIT_MS) {
      const places = agentPlaces(config, mission);
      makeDirectory(machine.disk, places.directory);
      return acquireLock(machine, places.lock, { purpose, waitMs });
    },
    [Symbol.dispose]() {
      registry?.[Symbol.dispose]();
      registry = undefined;
    },
  };
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
