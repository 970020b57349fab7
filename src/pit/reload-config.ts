// The configuration of a running pit, which reads its file again: settings take effect without a restart. Paths and intervals
// stay as they were when it started, since locks, sockets and watches depend on them. A file that cannot be used changes nothing.
import type { Adapter } from "../agents/adapter.ts";
import { allAdapters } from "../agents/adapters.ts";
import { declaredAdapters } from "../agents/declared.ts";
import type { ConfigKey, EffectiveConfig } from "../cell/config.ts";
import type { JsonObject } from "../platform/json-file.ts";
import { readSettings } from "../snapshot/settings.ts";
import { describeError } from "./describe.ts";
import { checkPitSettings } from "./settings.ts";

export interface ReloadableConfig {
  readonly effective: EffectiveConfig;
  /** The agent CLIs that are known: those of the config first. */
  readonly adapters: readonly Adapter[];
  onReload(listener: () => void): void;
  /** Whether anything changed. */
  reload(): boolean;
}

/** Sections that services of the pit read when they start. */
const FIXED_SECTIONS = ["alerts"];
const FIXED_PIT_KEYS = ["http_port", "gitea"];

/** Without `read`, nothing ever changes. */
export function createReloadableConfig(
  initial: EffectiveConfig,
  read: (() => EffectiveConfig) | undefined,
  log: (line: string) => void,
): ReloadableConfig {
  let effective = initial;
  let adapters = readAdapters(initial);
  const listeners = new Set<() => void>();
  // What was read last, usable or not: reported once.
  let seen = JSON.stringify([initial.config, initial.document]);
  const readNew = (): EffectiveConfig | undefined => {
    try {
      const found = read!();
      if (effective.file !== undefined && found.file !== effective.file)
        throw new Error(found.ignored ?? `${effective.file} is gone`);
      const text = JSON.stringify([found.config, found.document]);
      if (text === seen) return undefined;
      check(found);
      seen = text;
      return found;
    } catch (error) {
      const reason = describeError(error);
      if (seen !== reason) log(`the pit keeps its previous settings: ${reason}`);
      seen = reason;
      return undefined;
    }
  };
  return {
    get effective() {
      return effective;
    },
    get adapters() {
      return adapters;
    },
    onReload: (listener) => void listeners.add(listener),
    reload() {
      const found = read && readNew();
      if (found === undefined) return false;
      const later = findFixed(effective, found);
      // Unchanged when a wrong value was corrected to what it was before.
      const isSame = JSON.stringify(found.document) === JSON.stringify(effective.document);
      effective = { ...found, config: initial.config, origins: initial.origins };
      adapters = readAdapters(effective);
      if (!isSame) log("the settings have changed and are in effect");
      if (later.length > 0) log(`restart the pit to use the new values of ${later.join(", ")}`);
      for (const listener of listeners) listener();
      return true;
    },
  };
}

/** Throws for a wrong value. */
function check({ document, file }: EffectiveConfig): void {
  checkPitSettings(document, file);
  readSettings(document, file);
  declaredAdapters(document, file);
}

function readAdapters({ document, file }: EffectiveConfig): readonly Adapter[] {
  return allAdapters(declaredAdapters(document, file));
}

function findFixed(before: EffectiveConfig, found: EffectiveConfig): string[] {
  const differ = (a: unknown, b: unknown) => JSON.stringify(a) !== JSON.stringify(b);
  const pit = ({ document }: EffectiveConfig) => (document.pit ?? {}) as JsonObject;
  return [
    ...Object.keys(found.config).filter((key) =>
      differ(before.config[key as ConfigKey], found.config[key as ConfigKey]),
    ),
    ...FIXED_SECTIONS.filter((key) => differ(before.document[key], found.document[key])),
    ...FIXED_PIT_KEYS.filter((key) => differ(pit(before)[key], pit(found)[key])).map((key) => `pit.${key}`),
  ];
}
