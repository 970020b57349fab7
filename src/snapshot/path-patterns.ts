// Path patterns of the settings: globs over paths relative to the cell. `*` stays within a name, `**` crosses names. A
// pattern without a slash, or with one only at its end, matches a name at any depth; one that starts with a slash is
// anchored at the cell. These patterns decide what is secret (INV-7): path-patterns.test.ts pins their meaning.
import picomatch from "picomatch";

/** Whether any pattern matches a path. Callers that have the path's last name pass it too. */
export type Matcher = (path: string, name?: string) => boolean;

const GLOB_CHARACTERS = /[*?[{]/;

export function createMatcher(patterns: readonly string[]): Matcher {
  const exactNames = new Set<string>();
  const names: string[] = [];
  const paths: string[] = [];
  for (const given of patterns) {
    // "build/" is how other tools name a directory; taken literally it would match nothing.
    const pattern = given.length > 1 ? given.replace(/\/+$/, "") : given;
    if (pattern.includes("/")) paths.push(pattern.replace(/^(?:\.?\/)+/, ""));
    else if (GLOB_CHARACTERS.test(pattern)) names.push(pattern);
    else exactNames.add(pattern);
  }
  const matchesName = createTest(names);
  // "/" is the cell itself, which is not a path in it.
  const matchesPath = createTest(paths.filter((path) => path !== ""));
  return (path, given) => {
    const name = given ?? path.slice(path.lastIndexOf("/") + 1);
    return exactNames.has(name) || matchesName(name) || matchesPath(path);
  };
}

/** Copies of an agent's databases, which cannot be redacted (docs/conversation.md). */
const CONVERSATION_DATABASES = "conversation/**/*.database";

/** Matches paths of secrets: a pattern that matches a directory covers everything in it. */
export function createSecretMatcher(patterns: readonly string[]): (path: string) => boolean {
  const matches = createMatcher([...patterns, CONVERSATION_DATABASES]);
  const known = new Map<string, boolean>([["", false]]);
  const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));
  const isSecretDirectory = (directory: string): boolean => {
    const before = known.get(directory);
    if (before !== undefined) return before;
    const isSecret = matches(directory) || isSecretDirectory(parentOf(directory));
    known.set(directory, isSecret);
    return isSecret;
  };
  return (path) => matches(path) || isSecretDirectory(parentOf(path));
}

const OPTIONS = {
  dot: true,
  nonegate: true,
  noextglob: true,
  /** `[ab]` is a set of characters, never the literal text "[ab]". */
  literalBrackets: false,
  /** `a/**` matches what is in `a`, not `a` itself. */
  strictSlashes: true,
  windows: false,
} as const;

/** One expression for all globs, since it is tried on every path of a cell. */
function createTest(globs: readonly string[]): (text: string) => boolean {
  if (globs.length === 0) return () => false;
  const sources = globs.map((glob) => picomatch.makeRe(escapeExtensions(glob), OPTIONS).source);
  // "s": names may contain newlines.
  const expression = new RegExp(sources.join("|"), "s");
  return (text) => expression.test(text);
}

/** A set of characters, an open brace, or a character that has a meaning in picomatch but none in a glob. */
const SPECIAL = /\[([!^]?)(\]?[^\]]*)\]|\{(?![^}]*\})|[\\()|+@!"^$]/g;

function escapeExtensions(glob: string): string {
  return glob.replace(SPECIAL, (token, negation?: string, characters?: string) => {
    if (characters === undefined) return `\\${token}`;
    const escaped = characters.replace(/[\\\]^[]/g, "\\$&");
    // A set stays within a name: its complement does not match the slash.
    return negation ? `[^/${escaped}]` : `[${escaped}]`;
  });
}
