// Finds secrets in text with secretlint's recommended rules (INV-7), which are maintained upstream, and the few generic
// rules that they lack. They are loaded on first use: 25 ms, then 0.04 ms for two kilobytes. Callers decide whether to
// refuse or to redact; only ranges are returned, never the secret itself.
import { findGenericSecrets } from "./generic.ts";

/** The position of a secret in the text, and its kind ("github", "privatekey"). */
export interface SecretRange {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

type Lint = (text: string) => Promise<SecretRange[]>;

let loaded: Promise<Lint> | undefined;

/** Every secret in `text`, in order and without overlaps. */
export async function findSecrets(text: string): Promise<SecretRange[]> {
  if (text.length < SHORTEST_SECRET) return [];
  loaded ??= loadRules();
  return (await loaded)(text);
}

const SHORTEST_SECRET = 8;

/** The part of secretlint's rule interface that is used here. */
interface Rule {
  readonly meta: { readonly id: string; readonly supportedContentTypes: readonly string[] };
  create(context: object, options: object): { file?(source: object): unknown };
}

/**
 * Calls the rules directly instead of through secretlint's linter, whose overhead doubles the time and whose profiler
 * keeps a mark of every call in memory. Like the linter, creates the rules again for each text, since they may hold state.
 */
async function loadRules(): Promise<Lint> {
  const preset = await import("@secretlint/secretlint-rule-preset-recommend");
  // Without the comment filter: "secretlint-disable" in the text must not disable anything.
  const rules = (preset.rules as unknown as Rule[])
    .filter(({ meta }) => !meta.id.endsWith("filter-comments") && readsText(meta.supportedContentTypes))
    .map((rule) => ({ rule, kind: rule.meta.id.replace(/^.*secretlint-rule-/, "") }));
  return async (content) => {
    const source = { content, filePath: "/text.txt", ext: ".txt", contentType: "text", hasBOM: false };
    const found: SecretRange[] = [];
    for (const { rule, kind } of rules) {
      const report = ({ range: [start, end] }: Report) =>
        found.push({ kind, start, end: endOfWord(content, end) });
      const pending = rule.create({ sharedOptions: {}, createTranslator, ignore, report }, {}).file?.(source);
      if (pending !== undefined) await pending;
    }
    // Last: where two rules report the same range, the more specific one names it.
    found.push(...findGenericSecrets(content));
    found.sort((a, b) => a.start - b.start || b.end - a.end);
    return found.reduce(merge, []);
  };
}

interface Report {
  readonly range: readonly [number, number];
}

/** A rule's message may contain the secret, so it is dropped. */
const createTranslator = () => (messageId: string) => ({ message: "", messageId });
const ignore = () => {};

/** Joins overlapping ranges, which two rules may report for one secret. Ranges come sorted by start. */
function merge(merged: SecretRange[], next: SecretRange): SecretRange[] {
  const last = merged.at(-1);
  if (last === undefined || next.start >= last.end) merged.push(next);
  else if (next.end > last.end) merged[merged.length - 1] = { ...last, end: next.end };
  return merged;
}

function readsText(contentTypes: readonly string[]): boolean {
  return contentTypes.includes("text") || contentTypes.includes("all");
}

const TOKEN_CHARACTERS = /[\w/+=.~-]*/y;

/** Some rules report the start of a name with the length of its value, which cuts off the end of the value. */
function endOfWord(text: string, from: number): number {
  TOKEN_CHARACTERS.lastIndex = from;
  return from + TOKEN_CHARACTERS.exec(text)![0].length;
}
