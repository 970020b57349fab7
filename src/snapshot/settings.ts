// The `snapshot`, `retention` and `secrets` sections of the config file, validated. path-patterns.ts defines what the
// patterns in them mean.
import { defaultsOf, readSection, type SettingValues, setting } from "../cell/settings.ts";
import type { JsonObject } from "../platform/json-file.ts";

export const DEFAULT_SECRETS: readonly string[] = [
  ".env",
  ".env.*",
  "*.pem",
  "*.key",
  "*.p12",
  "*.pfx",
  "*.keystore",
  "*.jks",
  "id_rsa",
  "id_dsa",
  "id_ecdsa",
  "id_ed25519",
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".pgpass",
  ".git-credentials",
  "credentials.json",
  "service-account*.json",
  "**/.aws/credentials",
  "**/.ssh/**",
  "**/.gnupg/**",
  "**/.docker/config.json",
  "**/.kube/config",
  ".credentials.json",
  "oauth_creds.json",
  "**/.codex/auth.json",
  "**/opencode/auth.json",
  "**/.pi/agent/auth.json",
];

const amount = (value: number, description: string) =>
  setting({
    type: (z) => z.int().min(0),
    default: value as number,
    allowed: "a whole number, 0 or more",
    description,
  });

const patterns = (value: readonly string[], description: string) =>
  setting({
    type: (z) => z.array(z.string()).readonly(),
    default: value,
    allowed: "a list of patterns",
    description,
  });

const LIMITS = {
  keep_last: amount(20, "keep this many of the newest checkpoints"),
  keep_hourly: amount(24, "keep the newest checkpoint of each of this many hours"),
  keep_daily: amount(14, "keep the newest checkpoint of each of this many days"),
  keep_weekly: amount(8, "keep the newest checkpoint of each of this many weeks"),
  keep_within_seconds: amount(3600, "keep every checkpoint younger than this"),
  max_bytes: amount(0, "remove the oldest checkpoints above this vault size; 0: no limit"),
};

export const SNAPSHOT_SETTINGS = {
  snapshot: {
    compression: setting({
      type: (z) => z.enum(["gzip", "zstd"]),
      default: "gzip" as "gzip" | "zstd",
      allowed: '"gzip" or "zstd"',
      description: "compression of new layers",
    }),
    exclude: patterns([], "paths to leave out of checkpoints; a restore never removes them"),
  },
  secrets: {
    patterns: patterns(DEFAULT_SECRETS, "paths stored in local-only layers that are never pushed"),
  },
  retention: {
    ...LIMITS,
    auto: setting({
      type: (z) => z.boolean(),
      default: true as boolean,
      allowed: "true or false",
      description: "prune after each checkpoint",
    }),
  },
};

/** What `prune` keeps. */
export type Retention = SettingValues<typeof LIMITS>;

export const DEFAULT_RETENTION: Retention = defaultsOf(LIMITS);

export interface SnapshotSettings {
  readonly compression: "gzip" | "zstd";
  /** Left out of checkpoints; restore never removes what they match. */
  readonly exclude: readonly string[];
  /** Captured into local-only layers that are never pushed. */
  readonly secrets: readonly string[];
  readonly retention: Retention;
  /** Prune after each checkpoint. */
  readonly autoPrune: boolean;
}

export function readSettings(document: JsonObject, file: string | undefined): SnapshotSettings {
  const read = <N extends keyof typeof SNAPSHOT_SETTINGS>(name: N) =>
    readSection(SNAPSHOT_SETTINGS[name], document[name], `${file ?? "config"}: ${name}`, {
      nullIsUnset: true,
    });
  const { auto = true, ...limits } = read("retention");
  const { compression = "gzip", exclude = [] } = read("snapshot");
  const { patterns: secrets = DEFAULT_SECRETS } = read("secrets");
  return {
    compression,
    exclude,
    secrets,
    retention: { ...DEFAULT_RETENTION, ...limits },
    autoPrune: auto,
  };
}
