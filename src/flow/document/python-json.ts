// JSON that is compatible with the Python tool: numbers keep their exact text through a rewrite, and the form that is
// hashed equals json.dumps(value, sort_keys=True, separators=(",", ":")) byte for byte. Pure.

/** A number that JavaScript would write differently: 1.0, 1e400, 12345678901234567890. JSON.stringify keeps its text. */
interface RawJson {
  readonly rawJSON: string;
}

/** Available in Node 24, but not yet in TypeScript's library. */
const exactJson = JSON as unknown as {
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
};

/** Finds numbers other than short integers. May match inside a string, which only costs the slower path. */
const INEXACT_NUMBER = /(?:"\s*:|[[,])\s*-?\d+(?:[.eE]|\d{15})/;
const SHORT_INTEGER = /^-?\d{1,15}$/;
const NON_ASCII = /[\u007f-\uffff]/;
const SURROGATE = /[\ud800-\udfff]/;
/** Python's own limit is near 1,000 levels. */
const MAX_DEPTH = 200;

export class NestingError extends Error {}

/** Parses JSON without losing digits. Throws what JSON.parse throws. */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isStringsOnly(value) || !INEXACT_NUMBER.test(text)) return value;
  return exactJson.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && !SHORT_INTEGER.test(source)
      ? exactJson.rawJSON(source)
      : value,
  );
}

/** Whether an object holds only strings and lists of strings, like nearly every flow file: it has no numbers to preserve. */
function isStringsOnly(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  for (const key in value) {
    const field = (value as Record<string, unknown>)[key];
    if (typeof field === "string" || field === null) continue;
    if (!Array.isArray(field)) return false;
    for (let i = 0; i < field.length; i += 1) if (typeof field[i] !== "string") return false;
  }
  return true;
}

/** The text of a file: two-space indent, and ASCII only like the Python tool, so that it is safe to print. */
export function formatExact(value: unknown): string {
  return `${escapeNonAscii(JSON.stringify(value, null, 2))}\n`;
}

/** Formats a value on a single line, for logs; ASCII only as well. */
export function formatLine(value: unknown): string {
  return escapeNonAscii(JSON.stringify(value));
}

/**
 * The text that is hashed: `object` without the field `omit`. `ascii` false gives the form of writers that set
 * ensure_ascii=False.
 */
export function pythonJson(object: object, omit: string | undefined, ascii: boolean): string {
  allPlain = true;
  const text = pythonObject(object as Record<string, unknown>, omit, 0);
  return ascii && !allPlain ? escapeNonAscii(text) : text;
}

export function hasNonAscii(text: string): boolean {
  return NON_ASCII.test(text);
}

function pythonValue(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new NestingError();
  if (typeof value === "string") return quote(value);
  if (value === null) return "null";
  if (typeof value === "number") return pythonNumber(JSON.stringify(value));
  if (typeof value !== "object") return JSON.stringify(value);
  if (exactJson.isRawJSON(value)) return pythonNumber(value.rawJSON);
  if (!Array.isArray(value)) return pythonObject(value as Record<string, unknown>, undefined, depth);
  let text = "[";
  for (let i = 0; i < value.length; i += 1) {
    if (i > 0) text += ",";
    text += pythonValue(value[i], depth + 1);
  }
  return `${text}]`;
}

/** Nearly all strings need no escaping, and testing for that is cheaper than JSON.stringify. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** Whether every string so far matched PLAIN: then the result is ASCII too. */
let allPlain = true;

function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  allPlain = false;
  return JSON.stringify(text);
}

/** Files of one directory usually have the same keys in the same order, so the last sorted list is cached. */
let lastKeys: readonly string[] = [];
let lastSorted: readonly string[] = [];
let lastQuoted: readonly string[] = [];
let lastPlain = true;

function pythonObject(object: Record<string, unknown>, omit: string | undefined, depth: number): string {
  const keys = Object.keys(object);
  if (!isSameList(keys, lastKeys)) {
    lastKeys = keys;
    lastSorted = sortKeys([...keys]);
    lastQuoted = lastSorted.map((key) => `${JSON.stringify(key)}:`);
    lastPlain = keys.every((key) => PLAIN.test(key));
  }
  const sorted = lastSorted;
  const quoted = lastQuoted;
  if (!lastPlain) allPlain = false;
  let text = "{";
  for (let i = 0; i < sorted.length; i += 1) {
    const key = sorted[i]!;
    if (key === omit) continue;
    const value = object[key];
    if (text.length > 1) text += ",";
    text += quoted[i];
    text += typeof value === "string" ? quote(value) : pythonValue(value, depth + 1);
  }
  return `${text}}`;
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}

/** Python compares strings by code point; JavaScript by UTF-16 code unit, which puts U+1F600 before U+FF5E. */
function sortKeys(keys: string[]): string[] {
  return keys.some((key) => SURROGATE.test(key)) ? keys.sort(byCodePoint) : keys.sort();
}

function byCodePoint(a: string, b: string): number {
  const left = Array.from(a, (character) => character.codePointAt(0)!);
  const right = Array.from(b, (character) => character.codePointAt(0)!);
  for (const [i, point] of left.entries()) {
    const other = right[i];
    if (other === undefined) return 1;
    if (point !== other) return point - other;
  }
  return left.length - right.length;
}

function escapeNonAscii(text: string): string {
  if (!NON_ASCII.test(text)) return text;
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How Python's json.dumps writes the number that json.loads read from `source`. */
export function pythonNumber(source: string): string {
  if (!/[.eE]/.test(source)) return source === "-0" ? "0" : source;
  const value = Number(source);
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  // Both languages choose the same shortest digits; only the position of the point differs.
  const [mantissa = "", exponentText = "0"] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}
