// What a cell may change about its own supervision: the agent can write to `config/cell.json`, so what it asks for there
// can only narrow what the user granted (INV-11). Everything else is ignored, with a warning that names file and key and
// the command that grants it. Pure.

import { readSection } from "../cell/settings.ts";
import { messageOf } from "../platform/errors.ts";
import { isJsonObject, type JsonObject, type JsonReading } from "../platform/json-file.ts";
import type { ReviveMode } from "./record/record.ts";
import { PIT_SETTINGS, type PitValues } from "./settings.ts";

/** From the most to the least that a mode allows. */
const MODES: readonly ReviveMode[] = ["yes", "substitute", "ask", "no"];

/** The narrower value; undefined when `requested` would widen `granted`. */
type Rule<Value> = (granted: Value, requested: Value) => Value | undefined;

const atMost: Rule<number> = (granted, requested) => (requested <= granted ? requested : undefined);
const atLeast: Rule<number> = (granted, requested) => (requested >= granted ? requested : undefined);
/** Null: never. */
const sooner: Rule<number | null> = (granted, requested) =>
  granted === null || (requested !== null && requested <= granted) ? requested : undefined;

/** The keys that a cell may narrow. Any other key is the user's alone. */
const RULES: { readonly [Key in keyof PitValues]?: Rule<PitValues[Key]> } = {
  revive: (granted, requested) =>
    MODES.indexOf(requested) >= MODES.indexOf(granted) ? requested : undefined,
  backoff_seconds: slower,
  overload_backoff_seconds: slower,
  healthy_seconds: atLeast,
  max_revivals_per_hour: atMost,
  max_age_seconds: atMost,
  alike_crashes_per_step: atMost,
  permanent_exit_codes: (granted, requested) => [...new Set([...granted, ...requested])],
  grace_seconds: atMost,
  leftover_grace_seconds: atMost,
  stall_seconds: sooner,
  progress_seconds: sooner,
  log_limit_bytes: atMost,
  log_count: atMost,
};

/** Each delay must be at least as long; the last one repeats. */
function slower(granted: readonly number[], requested: readonly number[]): readonly number[] | undefined {
  const length = Math.max(granted.length, requested.length, 1);
  const at = (delays: readonly number[], index: number) => delays[Math.min(index, delays.length - 1)] ?? 0;
  const indices = Array.from({ length }, (_, index) => index);
  return indices.every((index) => at(requested, index) >= at(granted, index)) ? requested : undefined;
}

/** The granted values, narrowed where the request allows it, and the keys that were ignored. */
export function narrow(
  granted: PitValues,
  requested: Partial<PitValues>,
): { readonly values: PitValues; readonly ignored: readonly string[] } {
  const values: Record<string, unknown> = { ...granted };
  const ignored: string[] = [];
  for (const [key, value] of Object.entries(requested)) {
    const rule = (RULES as Readonly<Record<string, Rule<unknown> | undefined>>)[key];
    const narrowed = rule?.(values[key], value);
    if (narrowed !== undefined) values[key] = narrowed;
    else if (JSON.stringify(value) !== JSON.stringify(values[key])) ignored.push(key);
  }
  return { values: values as PitValues, ignored };
}

export interface Narrowed {
  readonly values: PitValues;
  /** By key, so that each is reported once, however often the agent changes its value. */
  readonly warnings: Readonly<Record<string, string>>;
}

/** Applies the section `pit` of a cell's config file. A file or section that cannot be read narrows `revive` to ask. */
export function applyCell(granted: PitValues, mission: string, path: string, reading: JsonReading): Narrowed {
  if (!reading.ok && reading.why === "absent") return { values: granted, warnings: {} };
  try {
    if (!reading.ok) throw new Error(`${path}: ${reading.reason}`);
    const { pit: section, resume_command: resumeCommand } = reading.value;
    const requested = readSection(NARROWABLE, section, `${path}: pit`) as Partial<PitValues>;
    const { values, ignored } = narrow(granted, requested);
    const warnings: Record<string, string> = {};
    const warn = (key: string, name: string) => {
      warnings[key] =
        `${path}: ${name} is ignored: a cell can only narrow what you granted; to grant it: lazarus set ${mission} ${key}=VALUE`;
    };
    for (const key of [...ignored, ...refusedKeys(section, granted)]) warn(key, `pit.${key}`);
    if (resumeCommand !== undefined) warn("resume_command", "resume_command");
    if (hasUnknownKeys(section))
      warnings[""] = `${path}: pit has keys that are not settings of a cell; they are not used`;
    return { values, warnings };
  } catch (error) {
    const { values } = narrow(granted, { revive: "ask" });
    const line = `${messageOf(error)}; until this is fixed the section is ignored and revive is "${values.revive}"`;
    return { values, warnings: { revive: line } };
  }
}

const NARROWABLE = Object.fromEntries(
  Object.entries(PIT_SETTINGS).filter(([key]) => key in RULES),
) as Partial<typeof PIT_SETTINGS>;

/** Settings that only the user may change, with another value than the granted one. Their values are not examined. */
function refusedKeys(section: unknown, granted: PitValues): string[] {
  if (!isJsonObject(section)) return [];
  return Object.entries(granted)
    .filter(([key, value]) => !(key in RULES) && differs(section[key], value))
    .map(([key]) => key);
}

function differs(requested: unknown, granted: unknown): boolean {
  return requested !== undefined && JSON.stringify(requested) !== JSON.stringify(granted);
}

function hasUnknownKeys(section: unknown): boolean {
  return Object.keys((section ?? {}) as JsonObject).some((key) => !(key in PIT_SETTINGS));
}
