// How other modules declare their sections of the config file: each setting is a zod type with a default, a description
// and a text about the allowed values. The list of all settings, `lazarus config` and docs/settings.md come from these
// tables. zod is loaded only when a section sets something, because it costs 30 ms; cell/config.ts, which every command
// reads, does not use it.
import { createRequire } from "node:module";
import type { ZodType, z } from "zod";
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject } from "../platform/json-file.ts";

export interface Setting<Type = unknown, Default = unknown> {
  readonly type: (zod: typeof z) => ZodType<Type>;
  readonly default: Default;
  /** Completes the sentence "pit.revive is not …". */
  readonly allowed: string;
  readonly description: string;
  /** Never printed: the value itself grants access. */
  readonly secret?: boolean;
}

export type Settings = Readonly<Record<string, Setting>>;

type Value<S> = S extends Setting<infer Type, infer Default> ? Type | Default : never;

export type SettingValues<S extends Settings> = { readonly [K in keyof S]: Value<S[K]> };

/** Infers the types; returns its argument. */
export function setting<Type, const Default extends Type | undefined>(
  declared: Setting<Type, Default>,
): Setting<Type, Default> {
  return declared;
}

export interface ReadOptions {
  /** Treat null like a missing key, even where the type does not allow it. */
  readonly nullIsUnset?: boolean;
}

/** The values that a section sets. `where` is its place in a file: "/etc/lazarus/config.json: pit". */
export function readSection<S extends Settings>(
  settings: S,
  section: unknown,
  where: string,
  { nullIsUnset = false }: ReadOptions = {},
): Partial<SettingValues<S>> {
  if (section === undefined || section === null) return {};
  if (!isJsonObject(section)) throw invalidSetting(where, "an object");
  const values: Record<string, unknown> = {};
  for (const [key, { type, allowed }] of Object.entries(settings)) {
    const value = section[key];
    if (value === undefined || (value === null && nullIsUnset)) continue;
    const result = type(loadZod()).safeParse(value);
    if (!result.success) throw invalidSetting(`${where}.${key}`, allowed);
    values[key] = result.data;
  }
  return values as Partial<SettingValues<S>>;
}

export function defaultsOf<S extends Settings>(settings: S): SettingValues<S> {
  const entries = Object.entries(settings).map(([key, { default: value }]) => [key, value]);
  return Object.fromEntries(entries) as SettingValues<S>;
}

/** A line for each key of a section that is not known. */
export function findUnknownKeys(section: unknown, where: string, known: readonly string[]): string[] {
  return Object.keys(isJsonObject(section) ? section : {})
    .filter((key) => !known.includes(key))
    .map((key) => `${where}: unknown key ${JSON.stringify(key)} is not used`);
}

/** Whether a text is a regular expression. */
export function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, "i");
    return true;
  } catch {
    return false;
  }
}

/** The message never repeats the value, which may be a secret. */
export function invalidSetting(key: string, expected: string): LazarusError {
  return new LazarusError("CONFIG_INVALID", `${key} is not ${expected}`, {
    hint: "edit it, then: lazarus config",
    details: { key, expected },
  });
}

function loadZod(): typeof z {
  return createRequire(import.meta.url)("zod").z;
}
