// Replaces the secrets in a JSON value (INV-7), including those that no single string shows: in a field's name, in a value
// that only its field's name reveals (`AWS_SECRET_ACCESS_KEY`), or split over adjacent text parts. find.ts decides
// what a secret is.
import { findSecrets, type SecretRange } from "./find.ts";

/** A value without its secrets, and how many were replaced. */
export interface Redacted<T> {
  readonly value: T;
  readonly count: number;
}

interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** No rule matches across it. */
const SEPARATOR = "\n\u0000\n";
/** Put between a field's name and its value, so that the rules see an assignment. */
const ASSIGNS = '="';

/** Replaces each secret by `[redacted: kind]`. Returns the same object when there is none. */
export async function redactSecrets<T>(value: T): Promise<Redacted<T>> {
  const whole = await redactStrings(value);
  const parts = await redactSplitText(whole.value);
  return { value: parts.value as T, count: whole.count + parts.count };
}

/** Checks all strings and field names in one pass. */
async function redactStrings(value: unknown): Promise<Redacted<unknown>> {
  const texts: { readonly text: string; readonly start: number }[] = [];
  let all = "";
  eachString(value, SEPARATOR, (text, before) => {
    all += before;
    texts.push({ text, start: all.length });
    all += text;
  });
  const ranges = await findSecrets(all);
  if (ranges.length === 0) return { value, count: 0 };
  let next = 0;
  const clean = rebuild(value, () => {
    const { text, start } = texts[next++]!;
    return replaceRanges(text, start, ranges);
  });
  return { value: clean, count: ranges.length };
}

/** Visits field names and strings in the order in which `rebuild` replaces them. */
function eachString(value: unknown, before: string, visit: (text: string, before: string) => void): void {
  if (typeof value === "string") visit(value, before);
  else if (Array.isArray(value)) for (const each of value) eachString(each, SEPARATOR, visit);
  else if (typeof value === "object" && value !== null) {
    for (const [name, each] of Object.entries(value)) {
      visit(name, SEPARATOR);
      eachString(each, ASSIGNS, visit);
    }
  }
}

function rebuild(value: unknown, nextString: () => string): unknown {
  if (typeof value === "string") return nextString();
  if (Array.isArray(value)) return value.map((each) => rebuild(each, nextString));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([, each]) => [nextString(), rebuild(each, nextString)]),
  );
}

/** A streaming model may split a token anywhere between two text parts. */
async function redactSplitText(value: unknown): Promise<Redacted<unknown>> {
  const clean = new Map<object, string>();
  let count = 0;
  for (const group of textGroups(value)) {
    const ranges = await findSecrets(group.map(({ text }) => text).join(""));
    count += ranges.length;
    let start = 0;
    for (const part of group) {
      if (ranges.length > 0) clean.set(part, replaceRanges(part.text, start, ranges));
      start += part.text.length;
    }
  }
  return count === 0 ? { value, count } : { value: replaceParts(value, clean), count };
}

/** Groups of two or more adjacent text parts in the arrays of a value. */
function textGroups(value: unknown): TextPart[][] {
  if (typeof value !== "object" || value === null) return [];
  if (!Array.isArray(value)) return Object.values(value).flatMap(textGroups);
  const groups: TextPart[][] = [];
  let group: TextPart[] = [];
  for (const each of [...value, undefined]) {
    if (isTextPart(each)) group.push(each);
    else {
      if (group.length > 1) groups.push(group);
      group = [];
      groups.push(...textGroups(each));
    }
  }
  return groups;
}

function isTextPart(value: unknown): value is TextPart {
  if (typeof value !== "object" || value === null) return false;
  return "type" in value && value.type === "text" && "text" in value && typeof value.text === "string";
}

function replaceParts(value: unknown, clean: ReadonlyMap<object, string>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => replaceParts(each, clean));
  const text = clean.get(value);
  if (text !== undefined) return { ...value, text };
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, replaceParts(each, clean)]));
}

/** `start` is the offset of `text` in the string that the ranges refer to. */
function replaceRanges(text: string, start: number, ranges: readonly SecretRange[]): string {
  let result = "";
  let done = 0;
  for (const range of ranges) {
    const from = Math.max(range.start - start, done);
    const to = Math.min(range.end - start, text.length);
    if (to <= done || from >= text.length) continue;
    result += `${text.slice(done, from)}[redacted: ${range.kind}]`;
    done = to;
  }
  return result + text.slice(done);
}
