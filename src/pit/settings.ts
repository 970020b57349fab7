// The `pit` section of the configuration. What a mission says of itself (config/cell.json, key `pit`) overrides what the
// config says of its agent (`pit.agents.<name>`), which overrides the section itself, which overrides the defaults.
// Pure: documents in, settings out, and a wrong value is an error that names file and key.
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { DEFAULT_LIMITS, type PolicyLimits, REVIVE_MODES, type ReviveMode } from "./death/policy.ts";

export interface QuotaPattern {
  /** A regular expression over one line of output; its first group, if any, says when the quota comes back. */
  readonly pattern: string;
}

export interface PitSettings {
  readonly revive: ReviveMode;
  readonly limits: PolicyLimits;
  /** Null: no schedule. */
  readonly checkpointEverySeconds: number | null;
  readonly checkpointAtShutdown: boolean;
  /** Between SIGTERM and SIGKILL. */
  readonly graceSeconds: number;
  /** The same for what an agent left behind. */
  readonly leftoverGraceSeconds: number;
  /** No activity for so long is a stall; null: never. */
  readonly stallSeconds: number | null;
  /** No progress of flows or runs for so long is a stall; null: never. */
  readonly progressSeconds: number | null;
  readonly logLimitBytes: number;
  /** How many older logs are kept beside the present one. */
  readonly logCount: number;
  readonly quotaPatterns: readonly QuotaPattern[];
}

export interface SettingsSource {
  /** The section, as written. */
  readonly section: unknown;
  /** Where it stands: "/etc/lazarus/config.json: pit". */
  readonly where: string;
}

const DEFAULTS: PitSettings = {
  revive: "ask",
  limits: DEFAULT_LIMITS,
  checkpointEverySeconds: null,
  checkpointAtShutdown: true,
  graceSeconds: 10,
  leftoverGraceSeconds: 2,
  stallSeconds: null,
  progressSeconds: null,
  logLimitBytes: 8 * 1024 * 1024,
  logCount: 2,
  quotaPatterns: [],
};

/** The settings for one agent of one mission; the config's own when neither is named. */
export function pitSettings(
  document: JsonObject,
  file: string | undefined,
  agent?: string,
  mission?: SettingsSource,
): PitSettings {
  const where = `${file ?? "config"}: pit`;
  const pit = sectionOf({ section: document.pit, where });
  const agents = sectionOf({ section: pit.agents, where: `${where}.agents` });
  const own = agent !== undefined && Object.hasOwn(agents, agent) ? agents[agent] : undefined;
  let settings = apply(DEFAULTS, pit, where);
  settings = apply(
    settings,
    sectionOf({ section: own, where: `${where}.agents.${agent}` }),
    `${where}.agents.${agent}`,
  );
  return mission === undefined ? settings : apply(settings, sectionOf(mission), mission.where);
}

/** Keys of the section that other rooms read. */
const KEYS_OF_OTHERS = ["agents", "http_port", "gitea"];

/** Throws for what is wrong anywhere in the config; returns a line for each key that nobody knows. */
export function checkPitSettings(document: JsonObject, file: string | undefined): string[] {
  pitSettings(document, file);
  const where = `${file ?? "config"}: pit`;
  const pit = sectionOf({ section: document.pit, where });
  const agents = sectionOf({ section: pit.agents, where: `${where}.agents` });
  for (const agent of Object.keys(agents)) pitSettings(document, file, agent);
  const unknown = (section: JsonObject, at: string, known: ReadonlySet<string>) =>
    Object.keys(section)
      .filter((key) => !known.has(key))
      .map((key) => `${at}: unknown key ${JSON.stringify(key)} is not used`);
  return [
    ...unknown(pit, where, new Set([...KEYS, ...KEYS_OF_OTHERS])),
    ...Object.entries(agents).flatMap(([agent, own]) =>
      unknown(sectionOf({ section: own, where }), `${where}.agents.${agent}`, new Set(KEYS)),
    ),
  ];
}

function sectionOf({ section, where }: SettingsSource): JsonObject {
  if (section === undefined || section === null) return {};
  if (isJsonObject(section)) return section;
  throw invalid(where, "an object");
}

const KEYS = [
  "revive",
  "backoff_seconds",
  "jitter",
  "healthy_seconds",
  "max_revivals_per_hour",
  "max_age_seconds",
  "alike_crashes_per_step",
  "permanent_exit_codes",
  "checkpoint_every_seconds",
  "checkpoint_at_shutdown",
  "grace_seconds",
  "leftover_grace_seconds",
  "stall_seconds",
  "progress_seconds",
  "log_limit_bytes",
  "log_count",
  "quota_patterns",
] as const;

type Key = (typeof KEYS)[number];

function apply(base: PitSettings, section: JsonObject, where: string): PitSettings {
  const read = createReader(section, where);
  return {
    revive: read.choice("revive", REVIVE_MODES, base.revive),
    limits: {
      backoffMs: read.numbers("backoff_seconds", 1000, base.limits.backoffMs),
      jitter: read.share("jitter", base.limits.jitter),
      healthyMs: read.number("healthy_seconds", 1000, base.limits.healthyMs),
      maxRevivalsPerHour: read.number("max_revivals_per_hour", 1, base.limits.maxRevivalsPerHour),
      maxAgeMs: read.number("max_age_seconds", 1000, base.limits.maxAgeMs),
      alikeCrashesPerStep: read.positive("alike_crashes_per_step", 1, base.limits.alikeCrashesPerStep),
      permanentExitCodes: read.numbers("permanent_exit_codes", 1, base.limits.permanentExitCodes),
    },
    checkpointEverySeconds: read.optional("checkpoint_every_seconds", base.checkpointEverySeconds),
    checkpointAtShutdown: read.flag("checkpoint_at_shutdown", base.checkpointAtShutdown),
    graceSeconds: read.number("grace_seconds", 1, base.graceSeconds),
    leftoverGraceSeconds: read.number("leftover_grace_seconds", 1, base.leftoverGraceSeconds),
    stallSeconds: read.optional("stall_seconds", base.stallSeconds),
    progressSeconds: read.optional("progress_seconds", base.progressSeconds),
    logLimitBytes: read.positive("log_limit_bytes", 1, base.logLimitBytes),
    logCount: read.number("log_count", 1, base.logCount),
    quotaPatterns: read.patterns("quota_patterns", base.quotaPatterns),
  };
}

function createReader(section: JsonObject, where: string) {
  const isAmount = (value: unknown): value is number =>
    typeof value === "number" && Number.isFinite(value) && value >= 0;
  const check = <T>(key: Key, expected: string, fallback: T, fits: (value: unknown) => T | undefined): T => {
    if (section[key] === undefined) return fallback;
    const value = fits(section[key]);
    if (value === undefined) throw invalid(`${where}.${key}`, expected);
    return value;
  };
  return {
    choice: <T extends string>(key: Key, choices: readonly T[], fallback: T): T =>
      check(key, `one of ${choices.join(", ")}`, fallback, (value) => choices.find((one) => one === value)),
    share: (key: Key, fallback: number): number =>
      check(key, "a number between 0 and 1", fallback, (value) =>
        isAmount(value) && value <= 1 ? value : undefined,
      ),
    number: (key: Key, unit: number, fallback: number): number =>
      check(key, "a number, 0 or more", fallback, (value) => (isAmount(value) ? value * unit : undefined)),
    positive: (key: Key, unit: number, fallback: number): number =>
      check(key, "a whole number above 0", fallback, (value) =>
        isAmount(value) && Number.isSafeInteger(value) && value > 0 ? value * unit : undefined,
      ),
    optional: (key: Key, fallback: number | null): number | null =>
      check<number | null>(key, "a number of seconds above 0, or null", fallback, (value) =>
        value === null || (isAmount(value) && value > 0) ? value : undefined,
      ),
    flag: (key: Key, fallback: boolean): boolean =>
      check(key, "true or false", fallback, (value) => (typeof value === "boolean" ? value : undefined)),
    numbers: (key: Key, unit: number, fallback: readonly number[]): readonly number[] =>
      check(key, "a list of numbers, 0 or more", fallback, (value) =>
        Array.isArray(value) && value.every(isAmount) ? value.map((each) => each * unit) : undefined,
      ),
    patterns: (key: Key, fallback: readonly QuotaPattern[]): readonly QuotaPattern[] =>
      check(key, "a list of regular expressions", fallback, (value) => {
        if (!Array.isArray(value) || !value.every((each) => typeof each === "string" && compiles(each)))
          return undefined;
        return value.map((pattern: string) => ({ pattern }));
      }),
  };
}

function compiles(pattern: string): boolean {
  try {
    new RegExp(pattern, "i");
    return true;
  } catch {
    return false;
  }
}

function invalid(key: string, expected: string): LazarusError {
  return new LazarusError("CONFIG_INVALID", `${key} is not ${expected}`, {
    hint: `edit it, then: lazarus config`,
    details: { key, expected },
  });
}
