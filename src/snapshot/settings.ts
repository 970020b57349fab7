// The `snapshot`, `retention` and `secrets` sections of the config file, checked. Patterns are globs over paths
// relative to the cell: `*` stays within a name, `**` crosses names; one without a slash, or with one only at its end,
// matches a name at any depth; one that begins with a slash starts at the cell.
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
  return { compression, exclude, secrets, retention: { ...DEFAULT_RETENTION, ...limits }, autoPrune: auto };
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
