// The `snapshot`, `retention` and `secrets` sections of the config file, checked. Patterns are globs over paths
// relative to the cell: `*` stays within a name, `**` crosses names; one without a slash, or with one only at its end,
// matches a name at any depth; one that begins with a slash starts at the cell.
import { LazarusError } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";

export interface Retention {
  readonly keep_last: number;
  readonly keep_hourly: number;
  readonly keep_daily: number;
  readonly keep_weekly: number;
  /** Everything younger than this stays. */
  readonly keep_within_seconds: number;
  /** 0 means no limit. */
  readonly max_bytes: number;
}

export interface SnapshotSettings {
  readonly compression: "gzip" | "zstd";
  /** Left out of checkpoints; restore never removes what they match. */
  readonly exclude: readonly string[];
  /** Captured into local-only layers that no push will take. */
  readonly secrets: readonly string[];
  readonly retention: Retention;
  /** Prune after each checkpoint. */
  readonly autoPrune: boolean;
}

export const DEFAULT_RETENTION: Retention = {
  keep_last: 20,
  keep_hourly: 24,
  keep_daily: 14,
  keep_weekly: 8,
  keep_within_seconds: 3600,
  max_bytes: 0,
};

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
];

const RETENTION_KEYS = Object.keys(DEFAULT_RETENTION) as (keyof Retention)[];

export function readSettings(document: JsonObject, file: string | undefined): SnapshotSettings {
  const invalid = (key: string, expected: string) =>
    new LazarusError("CONFIG_INVALID", `${file ?? "config"}: ${key} is not ${expected}`, {
      hint: `edit ${key} in ${file ?? "the config"}, then: lazarus config`,
      details: { file: file ?? null, key, expected },
    });
  const section = (name: string): JsonObject => {
    const value = document[name] ?? {};
    if (!isJsonObject(value)) throw invalid(name, "an object");
    return value;
  };
  const patterns = (owner: JsonObject, key: string, name: string, fallback: readonly string[]) => {
    const value = owner[key] ?? fallback;
    if (!Array.isArray(value) || !value.every((item) => typeof item === "string"))
      throw invalid(name, "a list of patterns");
    return value as readonly string[];
  };
  const snapshot = section("snapshot");
  const retention = section("retention");
  const compression = snapshot["compression"] ?? "gzip";
  if (compression !== "gzip" && compression !== "zstd")
    throw invalid("snapshot.compression", '"gzip" or "zstd"');
  const autoPrune = retention["auto"] ?? true;
  if (typeof autoPrune !== "boolean") throw invalid("retention.auto", "true or false");
  const kept: Record<string, number> = { ...DEFAULT_RETENTION };
  for (const key of RETENTION_KEYS) {
    const value = retention[key] ?? DEFAULT_RETENTION[key];
    if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
      throw invalid(`retention.${key}`, "a whole number, 0 or more");
    kept[key] = value;
  }
  return {
    compression,
    exclude: patterns(snapshot, "exclude", "snapshot.exclude", []),
    secrets: patterns(section("secrets"), "patterns", "secrets.patterns", DEFAULT_SECRETS),
    retention: kept as unknown as Retention,
    autoPrune,
  };
}

/** A fast test for "does any pattern match this path". */
export function createMatcher(patterns: readonly string[]): Matcher {
  const exact = new Set<string>();
  const endings = new Set<string>();
  const names: string[] = [];
  const paths: string[] = [];
  for (const given of patterns) {
    // "build/" is how one writes a directory elsewhere; without this it would match nothing, in silence.
    const pattern = given.length > 1 ? given.replace(/\/+$/, "") : given;
    if (pattern.includes("/")) paths.push(pattern.replace(/^(?:\.?\/)+/, ""));
    else if (ENDING.test(pattern)) endings.add(pattern.slice(1));
    else if (/[*?[{]/.test(pattern)) names.push(pattern);
    else exact.add(pattern);
  }
  const matchesName = createTest(names);
  const matchesWhole = createTest(paths);
  return (path, given) => {
    const base = given ?? path.slice(path.lastIndexOf("/") + 1);
    if ((exact.size > 0 && exact.has(base)) || matchesName(base)) return true;
    if (endings.size > 0 && endings.has(base.slice(Math.max(0, base.lastIndexOf("."))))) return true;
    return matchesWhole(path);
  };
}

/**
 * One compiled expression for all globs: path.matchesGlob costs microseconds, too much for 100,000 files. A glob can only
 * match where its longest plain text stands: 0.05 µs to see that it does not, the expression takes up to 1.
 */
function createTest(globs: readonly string[]): (text: string) => boolean {
  const expression = new RegExp(`^(?:${globs.map(globSource).join("|")})$`, "s");
  const marks = globs.map(longestText);
  return (text) => {
    for (const mark of marks) if (text.includes(mark)) return expression.test(text);
    return false;
  };
}

/** Tells whether a path matches; its last name may be given as well, where it is at hand. */
export type Matcher = (path: string, base?: string) => boolean;

/** `*.key`: looked up instead of tried one after the other. */
const ENDING = /^\*\.[^.*?[\]{}\\]+$/;

/** What a text must contain to match the glob. */
function longestText(glob: string): string {
  return glob.split(TOKENS).reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}

const TOKENS = /\*\*\/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|\{[^}]*\}/;

/** The same for secrets, where a pattern that names a directory means all that is in it. */
export function createSecretMatcher(patterns: readonly string[]): (path: string) => boolean {
  const matches = createMatcher(patterns);
  const known = new Map<string, boolean>([["", false]]);
  const isInside = (directory: string): boolean => {
    const before = known.get(directory);
    if (before !== undefined) return before;
    const inside =
      matches(directory) || isInside(directory.slice(0, Math.max(0, directory.lastIndexOf("/"))));
    known.set(directory, inside);
    return inside;
  };
  return (path) => matches(path) || isInside(path.slice(0, Math.max(0, path.lastIndexOf("/"))));
}

const TOKEN = /\*\*\/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|\{[^}]*\}|[\\^$.|+()[\]{}/]/g;

function globSource(glob: string): string {
  return glob.replace(TOKEN, (token) => {
    if (token === "**/") return "(?:.*/)?";
    if (token === "**") return ".*";
    if (token === "*") return "[^/]*";
    if (token === "?") return "[^/]";
    if (token.length === 1) return `\\${token}`;
    if (token.startsWith("{")) return `(?:${token.slice(1, -1).split(",").map(globSource).join("|")})`;
    const negated = token[1] === "!" || token[1] === "^";
    const set = token.slice(negated ? 2 : 1, -1).replace(/[\\\]^[]/g, "\\$&");
    return `[${negated ? "^/" : ""}${set}]`;
  });
}
