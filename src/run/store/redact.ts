// Takes secrets out of a value on its way into a record (INV-7), those too that no single string shows: in the name of a
// field, in a value that only its field's name gives away (`AWS_SECRET_ACCESS_KEY`), or spread over text parts that
// stand side by side. What a secret looks like is platform/secrets.ts's to know.
import { findSecrets, type SecretRange } from "../../platform/secrets.ts";

/** A value without its secrets, and how many there were. */
export interface Redacted {
  readonly value: unknown;
  readonly count: number;
}

interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** No rule spans it. */
const SEPARATOR = "\n\u0000\n";
/** Between a field's name and its text: the way in which the rules expect to see a secret assigned. */
const ASSIGNS = '="';

/** The same JSON data with each secret replaced by `[redacted: kind]`; as it is when there is none. */
export async function redactRecord(value: unknown): Promise<Redacted> {
  const whole = await redactStrings(value);
  const parts = await redactSplitText(whole.value);
  return { value: parts.value, count: whole.count + parts.count };
}

/** All strings and names in one look. */
async function redactStrings(value: unknown): Promise<Redacted> {
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

/** Visits the names and strings of a value, in the order in which `rebuild` asks for them. */
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

/** A model that streams may cut its words anywhere. */
async function redactSplitText(value: unknown): Promise<Redacted> {
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

/** Runs of two or more text parts in the lists of a value. */
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

/** `text` stands at `start` of what the ranges were found in. */
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
