// The one list of all settings, in the order of `lazarus config` and docs/settings.md. The ten keys of cell/config.ts are
// described here, because that file is on the hot path; every other section is declared by the module that owns it.
import { DECLARED_SETTINGS, declaredAdapters, findUnknownAgentKeys } from "../agents/declared.ts";
import { ALERT_SETTINGS, alertSettings } from "../alerts/settings.ts";
import { type ConfigKey, type EffectiveConfig, expectedValue } from "../cell/config.ts";
import { findUnknownKeys, readSection, type Settings } from "../cell/settings.ts";
import { FLOW_SETTINGS } from "../flow/settings.ts";
import { HTTP_SETTINGS } from "../http/settings.ts";
import { GITEA_SETTINGS, giteaSettings } from "../integrations/gitea/settings.ts";
import { checkPitSettings, PIT_SETTINGS } from "../pit/settings.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { SNAPSHOT_SETTINGS } from "../snapshot/settings.ts";

export interface SettingRow {
  /** With its section: `pit.revive`. */
  readonly key: string;
  /** Null when it is not set and has no default; secrets are replaced by `SECRET`. */
  readonly value: unknown;
  /** `default`, `LAZARUS_HOME` or the path of the config file. */
  readonly origin: string;
  readonly default: unknown;
  readonly allowed: string;
  readonly description: string;
}

export const SECRET = "(set, not shown)";

/** Defaults that depend on the user are described, not computed. */
const CONFIG_KEYS: Readonly<Record<ConfigKey, { readonly default: unknown; readonly description: string }>> =
  {
    missions_root: {
      default: "<data>/missions",
      description: "directory of all cells; /var/missions for root",
    },
    vault_root: {
      default: "<data>/vault",
      description: "directory of all vaults, where checkpoints are stored",
    },
    registry_file: { default: "<data>/registry.db", description: "index of all checkpoints and events" },
    run_dir: { default: "<data>/run", description: "sockets, locks and records of running agents" },
    heartbeat_dir: { default: "<data>/heartbeats", description: "heartbeat files of jobs" },
    heartbeat_file: {
      default: "state/heartbeat.json",
      description: "heartbeat of a mission, relative to its cell",
    },
    heartbeat_job: { default: "lazarus_pit", description: "job name of the pit's own heartbeat" },
    heartbeat_interval_seconds: { default: 60, description: "interval of the pit's own heartbeat" },
    stale_after_seconds: {
      default: 180,
      description: "a mission without a heartbeat for this long is stale",
    },
    required_subdirs: {
      default: ["meta", "config", "state", "logs", "artifacts", "worktree"],
      description: "directories that every cell must have; an empty list means the default",
    },
  };

const SECTIONS: readonly {
  readonly path: string;
  readonly settings: Settings;
  readonly nullIsUnset: boolean;
}[] = [
  ...Object.entries(SNAPSHOT_SETTINGS).map(([path, settings]) => ({ path, settings, nullIsUnset: true })),
  { path: "pit", settings: { ...PIT_SETTINGS, ...HTTP_SETTINGS }, nullIsUnset: false },
  { path: "pit.gitea", settings: GITEA_SETTINGS, nullIsUnset: true },
  { path: "alerts", settings: ALERT_SETTINGS, nullIsUnset: true },
  { path: "flow", settings: FLOW_SETTINGS, nullIsUnset: false },
];

/** Every setting with its effective value. Throws CONFIG_INVALID for a wrong value in any section. */
export function listSettings(effective: EffectiveConfig): SettingRow[] {
  const { config, origins, document, file } = effective;
  checkPitSettings(document, file);
  giteaSettings(document, file);
  declaredAdapters(document, file);
  const base = Object.entries(CONFIG_KEYS).map(([key, described]): SettingRow => {
    const name = key as ConfigKey;
    return { key, value: config[name], origin: origins[name], allowed: expectedValue(name), ...described };
  });
  return [
    ...base,
    ...SECTIONS.flatMap(({ path, settings, nullIsUnset }) => {
      const where = `${file ?? "config"}: ${path}`;
      const set = readSection(settings, sectionAt(document, path), where, { nullIsUnset });
      return rowsOf(path, settings, set, file);
    }),
    ...agentRows(document, file),
    ...Object.entries(sectionAt(document, "agents")).flatMap(([name, section]) => {
      const path = `agents.${name}`;
      return rowsOf(path, DECLARED_SETTINGS, readSection(DECLARED_SETTINGS, section, path), file);
    }),
  ];
}

/** What a user can declare about their own agent, for the list of all settings. */
export function declaredAgentRows(): SettingRow[] {
  return rowsOf("agents.<name>", DECLARED_SETTINGS, {}, undefined);
}

/** Checks every section, as the pit does. Throws for a wrong value; returns a line for each unknown key. */
export function checkConfig(effective: EffectiveConfig): string[] {
  const { document, file, warnings } = effective;
  listSettings(effective);
  alertSettings(document, file);
  return [
    ...warnings,
    ...checkPitSettings(document, file),
    ...findUnusedKeys(effective),
    ...findUnknownAgentKeys(document, file),
  ];
}

/** A line for each unknown key outside the section `pit`, which the pit itself reports. */
export function findUnusedKeys({ document, file }: EffectiveConfig): string[] {
  return SECTIONS.filter(({ path }) => path !== "pit").flatMap(({ path, settings }) =>
    findUnknownKeys(sectionAt(document, path), `${file ?? "config"}: ${path}`, [
      ...Object.keys(settings),
      ...SECTIONS.filter((each) => each.path.startsWith(`${path}.`)).map((each) =>
        each.path.slice(path.length + 1),
      ),
    ]),
  );
}

function rowsOf(
  path: string,
  settings: Settings,
  set: Readonly<Record<string, unknown>>,
  file: string | undefined,
): SettingRow[] {
  return Object.entries(settings).map(([key, { default: standard, allowed, description, secret }]) => {
    const isSet = set[key] !== undefined;
    const value = isSet ? set[key] : standard;
    return {
      key: `${path}.${key}`,
      value: isSet && secret ? SECRET : (value ?? null),
      origin: isSet ? (file ?? "config") : "default",
      default: standard ?? null,
      allowed,
      description,
    };
  });
}

/** What `pit.agents.<program>` overrides. */
function agentRows(document: JsonObject, file: string | undefined): SettingRow[] {
  return Object.entries(sectionAt(document, "pit.agents")).flatMap(([agent, section]) => {
    const path = `pit.agents.${agent}`;
    const set = readSection(PIT_SETTINGS, section, `${file ?? "config"}: ${path}`);
    return rowsOf(path, PIT_SETTINGS, set, file).filter(({ origin }) => origin !== "default");
  });
}

function sectionAt(document: JsonObject, path: string): JsonObject {
  let section: unknown = document;
  for (const name of path.split(".")) section = isJsonObject(section) ? section[name] : undefined;
  return (section ?? {}) as JsonObject;
}
