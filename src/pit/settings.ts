// The section `pit` of the config and what the user granted one mission. Options of `run` override the mission's settings
// (`lazarus set`), which override those of its agent (`pit.agents.<name>`), which override the section, which overrides
// the defaults. Nothing here comes from a cell: narrow.ts applies what a cell asks for (INV-11). Pure; a wrong value is an
// error that names file and key.

import { PATTERN_CLASSES } from "../agents/adapter.ts";
import {
  defaultsOf,
  findUnknownKeys,
  invalidSetting,
  isPattern,
  readSection,
  type Setting,
  type SettingValues,
  setting,
} from "../cell/settings.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { DEFAULT_EFFECT_RULES } from "./death/effect-rules.ts";
import type { Pattern } from "./death/match-patterns.ts";
import { DEFAULT_LIMITS, type PolicyLimits } from "./death/policy.ts";
import { type MissionRecord, REVIVE_MODES, type ReviveMode } from "./record/record.ts";

const amount = (value: number, description: string): Setting<number, number> =>
  setting({ type: (z) => z.number().min(0), default: value, allowed: "a number, 0 or more", description });

const optionalSeconds = (description: string): Setting<number | null, null> =>
  setting({
    type: (z) => z.number().positive().nullable(),
    default: null,
    allowed: "a number of seconds above 0, or null",
    description,
  });

const positiveInteger = (value: number, description: string): Setting<number, number> =>
  setting({
    type: (z) => z.int().positive(),
    default: value,
    allowed: "a whole number above 0",
    description,
  });

const numbers = (
  value: readonly number[],
  description: string,
): Setting<readonly number[], readonly number[]> =>
  setting({
    type: (z) => z.array(z.number().min(0)).readonly(),
    default: value,
    allowed: "a list of numbers, 0 or more",
    description,
  });

const patterns = (what: string): Setting<readonly string[], readonly string[]> =>
  setting({
    type: (z) => z.array(z.string().refine(isPattern)).readonly(),
    default: [],
    allowed: "a list of regular expressions",
    description: `lines at the end of the output of a failed agent that report ${what}`,
  });

export const PIT_SETTINGS = {
  revive: setting({
    type: (z) => z.enum(REVIVE_MODES),
    default: "ask" as ReviveMode,
    allowed: `one of ${REVIVE_MODES.join(", ")}`,
    description:
      "what to do when an agent dies: revive it, do nothing, ask a person, or start a fresh substitute",
  }),
  backoff_seconds: numbers(
    DEFAULT_LIMITS.backoffMs.map((ms) => ms / 1000),
    "delay before the first, second, … revival in a row, ±20 %; the last value repeats",
  ),
  overload_backoff_seconds: setting({
    type: (z) => z.array(z.number().positive().max(300)).min(1).readonly(),
    default: DEFAULT_LIMITS.overloadBackoffMs.map((ms) => ms / 1000) as readonly number[],
    allowed: "a list of numbers above 0, at most 300",
    description: "the same when the provider is overloaded or unreachable, or the quota is used up",
  }),
  healthy_seconds: amount(
    DEFAULT_LIMITS.healthyMs / 1000,
    "a life of this length resets the backoff and the count of identical crashes",
  ),
  max_revivals_per_hour: amount(DEFAULT_LIMITS.maxRevivalsPerHour, "more than this ends in a tombstone"),
  max_age_seconds: amount(
    DEFAULT_LIMITS.maxAgeMs / 1000,
    "ask instead of reviving when the death was longer ago than this",
  ),
  alike_crashes_per_step: positiveInteger(
    DEFAULT_LIMITS.alikeCrashesPerStep,
    "identical crashes in a row before the pit goes back to an older checkpoint",
  ),
  step_back_after_seconds: amount(
    DEFAULT_LIMITS.stepBackAfterMs / 1000,
    "how long identical crashes must have repeated by then, so that a short outage does not roll files back",
  ),
  permanent_exit_codes: numbers(
    DEFAULT_LIMITS.permanentExitCodes,
    "exit codes after which an agent is never revived",
  ),
  protect_within_seconds: setting({
    type: (z) => z.number().positive().nullable(),
    default: 30 as number | null,
    allowed: "a number of seconds above 0, or null",
    description:
      "save changes at most this long after they are made, while an agent works; null: no live points",
  }),
  quiet_seconds: amount(2, "take a live point after this long without another change"),
  protect_share: setting({
    type: (z) => z.number().positive().max(1),
    default: 0.05 as number,
    allowed: "a number above 0, at most 1",
    description: "share of the time that live points of one mission may take",
  }),
  audit_minutes: setting({
    type: (z) => z.number().positive(),
    default: 60 as number,
    allowed: "a number above 0",
    description: "walk the whole cell this often, to find what its watch missed",
  }),
  checkpoint_every_seconds: optionalSeconds("take a checkpoint at this interval; null: only on events"),
  checkpoint_at_shutdown: setting({
    type: (z) => z.boolean(),
    default: true as boolean,
    allowed: "true or false",
    description: "take a checkpoint of each running agent when the pit shuts down",
  }),
  grace_seconds: amount(10, "time between SIGTERM and SIGKILL for an agent"),
  leftover_grace_seconds: amount(2, "the same for processes that an agent left behind"),
  stall_seconds: optionalSeconds(
    "no output, write, CPU use or heartbeat for this long is a stall; null: never",
  ),
  progress_seconds: optionalSeconds("no progress of flows or runs for this long is a stall; null: never"),
  log_limit_bytes: positiveInteger(8 * 1024 * 1024, "rotate an agent's log at this size"),
  log_count: amount(2, "rotated logs to keep"),
  quota_patterns: patterns("a used-up quota; the first group is the reset time"),
  overload_patterns: patterns("an overloaded or unreachable provider"),
  auth_patterns: patterns("a login or key that was refused"),
  permanent_patterns: patterns("an error that a retry cannot fix"),
  effects: setting({
    type: (z) => z.array(z.string().refine(isPattern)).readonly(),
    default: DEFAULT_EFFECT_RULES,
    allowed: "a list of regular expressions",
    description:
      "shell commands and names of tools that must not be repeated blindly: when one was cut off, the user is asked whether it happened",
  }),
};

/** A value for every key of the section. */
export type PitValues = SettingValues<typeof PIT_SETTINGS>;

/** What a mission's record says about its settings. */
export type Grants = Pick<MissionRecord, "mission" | "agent" | "settings" | "revive" | "stall_seconds">;

/** What the user granted one mission; the values of the section when no mission is given. */
export function grantedValues(document: JsonObject, file: string | undefined, grants?: Grants): PitValues {
  const agent = grants?.agent;
  const where = `${file ?? "config"}: pit`;
  const agents = agentSections(document, where);
  const own = agent !== undefined && Object.hasOwn(agents, agent) ? agents[agent] : undefined;
  return {
    ...defaultsOf(PIT_SETTINGS),
    ...readSection(PIT_SETTINGS, document.pit, where),
    ...readSection(PIT_SETTINGS, own, `${where}.agents.${agent}`),
    ...readSection(PIT_SETTINGS, grants?.settings, `the settings of ${grants?.mission}`),
    ...(grants?.revive == null ? {} : { revive: grants.revive }),
    ...(grants?.stall_seconds == null ? {} : { stall_seconds: grants.stall_seconds }),
  };
}

/** Keys of the section that other modules read. */
const OTHER_KEYS = ["agents", "http_port", "gitea"];

/** Throws for a wrong value anywhere in the section; returns a line for each unknown key. */
export function checkPitSettings(document: JsonObject, file: string | undefined): string[] {
  grantedValues(document, file);
  const where = `${file ?? "config"}: pit`;
  const agents = agentSections(document, where);
  for (const [agent, own] of Object.entries(agents))
    readSection(PIT_SETTINGS, own, `${where}.agents.${agent}`);
  const known = Object.keys(PIT_SETTINGS);
  return [
    ...findUnknownKeys(document.pit, where, [...known, ...OTHER_KEYS]),
    ...Object.entries(agents).flatMap(([agent, own]) =>
      findUnknownKeys(own, `${where}.agents.${agent}`, known),
    ),
  ];
}

function agentSections(document: JsonObject, where: string): JsonObject {
  const agents = isJsonObject(document.pit) ? document.pit.agents : undefined;
  if (agents === undefined || agents === null) return {};
  if (!isJsonObject(agents)) throw invalidSetting(`${where}.agents`, "an object");
  return agents;
}

/** The values of the section in the units of the code. */
export type PitSettings = Readonly<ReturnType<typeof toSettings>>;

export function toSettings(values: PitValues) {
  return {
    revive: values.revive,
    limits: {
      backoffMs: values.backoff_seconds.map((each) => each * 1000),
      overloadBackoffMs: values.overload_backoff_seconds.map((each) => each * 1000),
      healthyMs: values.healthy_seconds * 1000,
      maxRevivalsPerHour: values.max_revivals_per_hour,
      maxAgeMs: values.max_age_seconds * 1000,
      alikeCrashesPerStep: values.alike_crashes_per_step,
      stepBackAfterMs: values.step_back_after_seconds * 1000,
      permanentExitCodes: values.permanent_exit_codes,
    } satisfies PolicyLimits,
    /** Null: no live points. */
    live:
      values.protect_within_seconds === null
        ? null
        : {
            withinMs: values.protect_within_seconds * 1000,
            quietMs: values.quiet_seconds * 1000,
            share: values.protect_share,
            auditMs: values.audit_minutes * 60_000,
          },
    checkpointEverySeconds: values.checkpoint_every_seconds,
    checkpointAtShutdown: values.checkpoint_at_shutdown,
    graceSeconds: values.grace_seconds,
    leftoverGraceSeconds: values.leftover_grace_seconds,
    stallSeconds: values.stall_seconds,
    progressSeconds: values.progress_seconds,
    logLimitBytes: values.log_limit_bytes,
    logCount: values.log_count,
    patterns: PATTERN_CLASSES.flatMap((each) =>
      values[`${each}_patterns`].map((pattern): Pattern => ({ class: each, pattern })),
    ),
    effectRules: values.effects,
  };
}
