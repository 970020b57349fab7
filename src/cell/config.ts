// The configuration: defaults, one file that overrides them key by key, and LAZARUS_HOME, which moves all directories below
// one. The origin of every effective value is known. The environment is injected; nothing here reads process.env.
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { LazarusError } from "../platform/errors.ts";
import { type JsonObject, readJsonFile } from "../platform/json-file.ts";
import { findTrustProblem } from "./config-trust.ts";

export const REQUIRED_SUBDIRS = ["meta", "config", "state", "logs", "artifacts", "worktree"] as const;

/** The settings of cells, with absolute paths. */
export interface Config {
  readonly missions_root: string;
  readonly heartbeat_job: string;
  readonly heartbeat_interval_seconds: number;
  readonly stale_after_seconds: number;
  readonly required_subdirs: readonly string[];
  readonly heartbeat_file: string;
  /** Where checkpoints are stored: one OCI layout per mission. */
  readonly vault_root: string;
  /** Where job heartbeats are written. */
  readonly heartbeat_dir: string;
  readonly registry_file: string;
  /** Sockets, locks and other state of running processes. */
  readonly run_dir: string;
}

export type ConfigKey = keyof Config;

/** The configuration in effect, and where each value came from. */
export interface EffectiveConfig {
  readonly config: Config;
  /** The origin of each value: `default`, `LAZARUS_HOME`, or the path of the config file. */
  readonly origins: Readonly<Record<ConfigKey, string>>;
  /** The file that was read, if any. */
  readonly file: string | undefined;
  /** Unknown keys; reported, never silently dropped. */
  readonly warnings: readonly string[];
  /** A sentence about the `./lazarus.json` that was not read because it is not trusted. */
  readonly ignored?: string;
  /** The whole file, for modules that have their own sections in it. */
  readonly document: JsonObject;
}

/** Environment, working directory and user, from which the configuration is found. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly isRoot: boolean;
  /** The user who runs the command; default: that of this process. */
  readonly userId?: number | undefined;
}

/** The type of each key. */
const KEYS: Readonly<Record<ConfigKey, "path" | "name" | "seconds" | "names" | "relative path">> = {
  missions_root: "path",
  heartbeat_job: "name",
  heartbeat_interval_seconds: "seconds",
  stale_after_seconds: "seconds",
  required_subdirs: "names",
  heartbeat_file: "relative path",
  vault_root: "path",
  heartbeat_dir: "path",
  registry_file: "path",
  run_dir: "path",
};

/** Sections that other modules own and check. */
const SECTIONS = new Set([
  "agents",
  "retention",
  "secrets",
  "snapshot",
  "pit",
  "alerts",
  "flow",
  "remote",
  "$schema",
]);

/** Finds, reads and checks the configuration. `explicitFile` is the value of `--config`. */
export function loadConfig(surroundings: Surroundings, explicitFile?: string): EffectiveConfig {
  const named = findNamedFile(surroundings, explicitFile);
  if (named !== undefined) return readConfig(surroundings, named);
  const standard = () => readConfig(surroundings, findStandardFile(surroundings));
  const local = join(surroundings.cwd, "lazarus.json");
  if (!existsSync(local)) return standard();
  const trustFile = trustFilePath(surroundings);
  const { userId = process.getuid?.() } = surroundings;
  const outer = standard();
  const { missions_root: missionsRoot, run_dir: runDir } = outer.config;
  const reason = findTrustProblem(local, { userId, missionsRoot, runDir, trustFile });
  if (reason === undefined) return readConfig(surroundings, local);
  const ignored = `${local} is not used: ${reason}; if its content is right: lazarus config trust, or name it with --config`;
  return { ...outer, ignored };
}

/** Where `lazarus config trust` stores what it accepts: next to the user's own config. */
export function trustFilePath(surroundings: Surroundings): string {
  return join(userConfigDirectory(surroundings), "trusted.json");
}

function readConfig(surroundings: Surroundings, file: string | undefined): EffectiveConfig {
  return resolveConfig(surroundings, file, file === undefined ? {} : readConfigFile(file));
}

/** Merges defaults, then the values of the file, then LAZARUS_HOME. Pure. */
export function resolveConfig(
  surroundings: Surroundings,
  file: string | undefined,
  document: JsonObject,
): EffectiveConfig {
  const home = lazarusHome(surroundings);
  const config: Record<string, unknown> = defaultConfig(surroundings);
  const origins = Object.fromEntries(Object.keys(KEYS).map((key) => [key, "default"])) as Record<
    ConfigKey,
    string
  >;
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(document)) {
    if (!isConfigKey(key)) {
      if (!SECTIONS.has(key)) warnings.push(`${file}: unknown key ${JSON.stringify(key)} is not used`);
      continue;
    }
    const checked = checkValue(key, value, file ?? "config");
    // An empty list means the default (docs/cells.md).
    if (key === "required_subdirs" && (checked as string[]).length === 0) continue;
    config[key] = KEYS[key] === "path" ? resolve(surroundings.cwd, checked as string) : checked;
    origins[key] = file ?? "config";
  }
  if (home !== undefined) {
    for (const [key, path] of Object.entries(pathsBelow(home))) {
      if (origins[key as ConfigKey] !== "default") {
        warnings.push(`${file}: ${key} is ignored because LAZARUS_HOME is set to ${home}`);
      }
      config[key] = path;
      origins[key as ConfigKey] = "LAZARUS_HOME";
    }
  }
  return { config: config as unknown as Config, origins, file, warnings, document };
}

/** A description of the allowed values of a key. */
export function expectedValue(key: ConfigKey): string {
  return EXPECTED[KEYS[key]];
}

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(KEYS, key);
}

function lazarusHome(surroundings: Surroundings): string | undefined {
  const home = surroundings.env.LAZARUS_HOME;
  return home ? resolve(surroundings.cwd, home) : undefined;
}

function pathsBelow(home: string) {
  return {
    missions_root: join(home, "missions"),
    vault_root: join(home, "vault"),
    heartbeat_dir: join(home, "heartbeats"),
    registry_file: join(home, "registry.db"),
    run_dir: join(home, "run"),
  };
}

function defaultConfig(surroundings: Surroundings): Config & Record<string, unknown> {
  const dataHome = surroundings.isRoot
    ? "/var/lib/lazarus"
    : join(surroundings.env.XDG_DATA_HOME || join(userHome(surroundings), ".local", "share"), "lazarus");
  const paths = pathsBelow(dataHome);
  return {
    ...paths,
    missions_root: surroundings.isRoot ? "/var/missions" : paths.missions_root,
    heartbeat_job: "lazarus_pit",
    heartbeat_interval_seconds: 60,
    stale_after_seconds: 180,
    required_subdirs: REQUIRED_SUBDIRS,
    heartbeat_file: "state/heartbeat.json",
  };
}

function userHome(surroundings: Surroundings): string {
  return surroundings.env.HOME || homedir();
}

/** The file named by the caller; it must exist. */
function findNamedFile({ env, cwd }: Surroundings, explicitFile: string | undefined): string | undefined {
  for (const [named, from] of [
    [explicitFile, "--config"],
    [env.LAZARUS_CONFIG, "LAZARUS_CONFIG"],
  ] as const) {
    if (!named) continue;
    const path = resolve(cwd, named);
    if (existsSync(path)) return path;
    throw new LazarusError("CONFIG_MISSING", `the config file ${path} named by ${from} does not exist`, {
      hint: `ls -l ${path}, or omit ${from} to use the defaults`,
    });
  }
  return undefined;
}

/** The file of the home, else of the user, else of the system. */
function findStandardFile(surroundings: Surroundings): string | undefined {
  const candidates = [join(userConfigDirectory(surroundings), "config.json")];
  if (lazarusHome(surroundings) === undefined) candidates.push("/etc/lazarus/config.json");
  return candidates.find((path) => existsSync(path));
}

/** LAZARUS_HOME, so that a trial is isolated, or the directory below the user's XDG config. */
function userConfigDirectory(surroundings: Surroundings): string {
  const { XDG_CONFIG_HOME: xdg } = surroundings.env;
  return lazarusHome(surroundings) ?? join(xdg || join(userHome(surroundings), ".config"), "lazarus");
}

function readConfigFile(file: string): JsonObject {
  // May be a symbolic link: people keep their settings in a repository.
  const reading = readJsonFile(realpathSync(file));
  if (reading.ok) return reading.value;
  throw new LazarusError("CONFIG_INVALID", `${file}: ${reading.reason}; expected a JSON object`, {
    hint: `correct it, then: lazarus config --config ${file}`,
    details: { file },
  });
}

function checkValue(key: ConfigKey, value: unknown, file: string): unknown {
  const expected = KEYS[key];
  const valid = {
    path: typeof value === "string" && value !== "" && !value.includes("\0"),
    name: typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(value),
    seconds: typeof value === "number" && Number.isFinite(value) && value > 0,
    names: Array.isArray(value) && value.every((name) => typeof name === "string" && isPlainName(name)),
    "relative path": typeof value === "string" && value !== "" && value.split("/").every(isPlainName),
  }[expected];
  if (valid) return value;
  throw new LazarusError(
    "CONFIG_INVALID",
    `${file}: ${key} is ${describe(value)}; expected ${EXPECTED[expected]}`,
    {
      hint: `edit ${key} in ${file}, then: lazarus config`,
      details: { file, key, expected: EXPECTED[expected] },
    },
  );
}

const EXPECTED = {
  path: "a path (string)",
  name: "a name of letters, digits, '.', '_' and '-' (string)",
  seconds: "a number of seconds above 0",
  names: "a list of directory names (strings without '/')",
  "relative path": "a path below the cell (string without '..')",
} as const;

function isPlainName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && !name.includes("/") && !name.includes("\0");
}

function describe(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  const text = JSON.stringify(value) ?? String(value);
  return `${typeof value} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`;
}
