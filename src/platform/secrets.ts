// Finds secrets in text with secretlint's recommended rules (INV-7): kept by others, not home-made patterns.
// They are loaded at first use: 25 ms, then 0.04 ms for two kilobytes. Whether to refuse or to redact is the
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

/** As much of a rule as is needed to ask it, in the words of secretlint's own contract. */
interface Rule {
  readonly meta: { readonly id: string; readonly supportedContentTypes: readonly string[] };
  create(context: object, options: object): { file?(source: object): unknown };
}

/**
 * The rules are asked without their linter: what it does around them took as long as they do, and its profiler keeps a
 * mark of every call for ever. They are made anew for each text, as there, so that none can carry over what it saw.
 */
async function load(): Promise<Lint> {
  const preset = await import("@secretlint/secretlint-rule-preset-recommend");
  // But for the comment filter: text that says "secretlint-disable" must disable nothing here.
  const rules = (preset.rules as unknown as Rule[])
    .filter(({ meta }) => !meta.id.endsWith("filter-comments") && readsText(meta.supportedContentTypes))
    .map((rule) => ({ rule, kind: rule.meta.id.replace(/^.*secretlint-rule-/, "") }));
  return async (content) => {
    const source = { content, filePath: "/text.txt", ext: ".txt", contentType: "text", hasBOM: false };
    const found: SecretRange[] = [];
    for (const { rule, kind } of rules) {
      const report = ({ range: [start, end] }: Report) =>
        found.push({ kind, start, end: endOfWord(content, end) });
      const answer = rule.create({ sharedOptions: {}, createTranslator, ignore, report }, {}).file?.(source);
      if (answer !== undefined) await answer;
    }
    found.sort((a, b) => a.start - b.start || b.end - a.end);
    return found.reduce(merge, []);
  };
}

interface Report {
  readonly range: readonly [number, number];
}

/** What a rule says would hold the secret itself; nobody here reads it. */
const createTranslator = () => (messageId: string) => ({ message: "", messageId });
const ignore = () => {};

/** Two rules may report overlapping halves of one secret. They come by start. */
function merge(merged: SecretRange[], next: SecretRange): SecretRange[] {
  const last = merged.at(-1);
  if (last === undefined || next.start >= last.end) merged.push(next);
  else if (next.end > last.end) merged[merged.length - 1] = { ...last, end: next.end };
  return merged;
}

function readsText(contentTypes: readonly string[]): boolean {
  return contentTypes.includes("text") || contentTypes.includes("all");
}

const OF_A_TOKEN = /[\w/+=.~-]*/y;

/** Some rules report where a name begins and how long its value is: the last half of the value lies behind that. */
function endOfWord(text: string, from: number): number {
  OF_A_TOKEN.lastIndex = from;
  return from + OF_A_TOKEN.exec(text)![0].length;
}
