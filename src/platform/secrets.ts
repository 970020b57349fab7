// Finds secrets in text with secretlint's recommended rules (INV-7): kept by others, not home-made patterns.
// The library is loaded at first use: 33 ms, then 0.3 ms for two kilobytes. Whether to refuse or to redact is the
// caller's decision; the secret itself never leaves this file but as a range.

/** Where a secret stands in the text, and what kind it is ("github", "privatekey"). */
export interface SecretRange {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/** Text with its secrets replaced. */
export interface Redaction<T> {
  readonly value: T;
  readonly count: number;
}

type Lint = (text: string) => Promise<SecretRange[]>;

let loaded: Promise<Lint> | undefined;

/** Every secret in `text`, in order and without overlaps. */
export async function findSecrets(text: string): Promise<SecretRange[]> {
  if (text.length < SHORTEST_SECRET) return [];
  loaded ??= load();
  return (await loaded)(text);
}

/** The same value with each secret in any of its strings replaced by `[redacted: kind]`. Keys are not looked at. */
export async function redactSecrets<T>(value: T): Promise<Redaction<T>> {
  const strings: string[] = [];
  collect(value, strings);
  // One pass over all strings; no rule spans the separator.
  const ranges = await findSecrets(strings.join(SEPARATOR));
  if (ranges.length === 0) return { value, count: 0 };
  const clean: string[] = [];
  let offset = 0;
  for (const text of strings) {
    const end = offset + text.length;
    clean.push(replaceRanges(text, offset, ranges));
    offset = end + SEPARATOR.length;
  }
  let next = 0;
  return { value: rebuild(value, () => clean[next++]!) as T, count: ranges.length };
}

const SHORTEST_SECRET = 8;
const SEPARATOR = "\n\u0000\n";

function collect(value: unknown, into: string[]): void {
  if (typeof value === "string") into.push(value);
  else if (typeof value === "object" && value !== null) {
    for (const each of Object.values(value)) collect(each, into);
  }
}

function rebuild(value: unknown, nextString: () => string): unknown {
  if (typeof value === "string") return nextString();
  if (Array.isArray(value)) return value.map((each) => rebuild(each, nextString));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rebuild(each, nextString)]));
}

function replaceRanges(text: string, offset: number, ranges: readonly SecretRange[]): string {
  let result = "";
  let done = 0;
  for (const { kind, start, end } of ranges) {
    const from = Math.max(start - offset, done);
    const to = Math.min(end - offset, text.length);
    if (to <= 0 || from >= text.length) continue;
    result += `${text.slice(done, from)}[redacted: ${kind}]`;
    done = to;
  }
  return result + text.slice(done);
}

async function load(): Promise<Lint> {
  const [{ lintSource }, preset] = await Promise.all([
    import("@secretlint/core"),
    import("@secretlint/secretlint-rule-preset-recommend"),
  ]);
  silenceProfiler();
  // The preset's rules but for its comment filter: text that says "secretlint-disable" must disable nothing here.
  const rules = preset.rules
    .filter(({ meta }) => !meta.id.endsWith("filter-comments"))
    .map((rule) => ({ id: rule.meta.id, rule, options: {} }));
  return async (content) => {
    const { messages } = await lintSource({
      source: { content, filePath: "/text.txt", ext: ".txt", contentType: "text" },
      options: { config: { rules }, noPhysicFilePath: true },
    });
    const found = messages.map(({ ruleId, range: [start, end] }) => ({
      kind: ruleId.replace(/^.*secretlint-rule-/, ""),
      start,
      end: endOfWord(content, end),
    }));
    found.sort((a, b) => a.start - b.start || b.end - a.end);
    return found.filter((range, i) => i === 0 || range.start >= found[i - 1]!.end);
  };
}

const OF_A_TOKEN = /[\w/+=.~-]*/y;

/** Some rules report where a name begins and how long its value is: the last half of the value lies behind that. */
function endOfWord(text: string, from: number): number {
  OF_A_TOKEN.lastIndex = from;
  return from + OF_A_TOKEN.exec(text)![0].length;
}

/**
 * Secretlint's profiler keeps every mark of every call for ever and searches them all at each one: after 10,000 texts a
 * process did nothing else. It is made for one run of a linter, not for a host that lives for weeks. The copy that
 * counts is the one that the linter itself loads.
 */
function silenceProfiler(): void {
  const { createRequire } = process.getBuiltinModule("node:module");
  const core = createRequire(import.meta.url).resolve("@secretlint/core");
  const { secretLintProfiler } = createRequire(core)("@secretlint/profiler");
  secretLintProfiler.mark = () => {};
}
