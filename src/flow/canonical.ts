// JSON as the Python tool sees it: numbers keep their exact text through a rewrite, and the canonical form that is
// hashed equals json.dumps(value, sort_keys=True, separators=(",", ":")), byte for byte. Pure: text in, text out.

/** A number whose text JavaScript would change: 1.0, 1e400, 12345678901234567890. JSON.stringify writes it as it was. */
interface RawJson {
  readonly rawJSON: string;
}

/** Node 24 has these; TypeScript's library does not name them yet. */
const exactJson = JSON as unknown as {
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
};

/** A number that is not a short whole one; may match inside a string, which only costs the slower path. */
const DELICATE_NUMBER = /(?:"\s*:|[[,])\s*-?\d+(?:[.eE]|\d{15})/;
const SHORT_WHOLE = /^-?\d{1,15}$/;
const BEYOND_ASCII = /[\u007f-\uffff]/;
const SURROGATE = /[\ud800-\udfff]/;
/** Python gives up near 1,000 levels; nobody's notes are that deep. */
const MAX_DEPTH = 200;

export class TooDeep extends Error {}

/** Parses JSON without losing a digit. Throws what JSON.parse throws. */
export function parseExact(text: string): unknown {
  if (!DELICATE_NUMBER.test(text)) return JSON.parse(text);
  return exactJson.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && !SHORT_WHOLE.test(source)
      ? exactJson.rawJSON(source)
      : value,
  );
}

/** A file's text: two-space indent, ASCII only as the Python tool writes it, so that even `cat` shows it harmlessly. */
export function formatExact(value: unknown): string {
  return `${escapeBeyondAscii(JSON.stringify(value, null, 2))}\n`;
}

/** The text that is hashed. `ascii` false gives the form of writers that set ensure_ascii=False. */
export function canonicalJson(value: object, ascii: boolean): string {
  const text = canonical(value, 0);
  return ascii ? escapeBeyondAscii(text) : text;
}

export function hasNonAscii(text: string): boolean {
  return BEYOND_ASCII.test(text);
}

function canonical(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new TooDeep();
  if (typeof value === "number") return pythonNumber(JSON.stringify(value));
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (exactJson.isRawJSON(value)) return pythonNumber(value.rawJSON);
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item === "string")) return JSON.stringify(value);
    return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  }
  const object = value as Record<string, unknown>;
  const keys = sortedKeys(object);
  // Strings and lists of strings only, which is nearly every flow file: one native call instead of twelve.
  if (keys.every((key) => isPlain(object[key]))) return JSON.stringify(object, keys);
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(object[key], depth + 1)}`).join(",")}}`;
}

function isPlain(value: unknown): boolean {
  if (typeof value === "string" || value === null) return true;
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Python compares strings by code point; JavaScript by UTF-16 unit, which puts U+1F600 before U+FF5E. */
function sortedKeys(object: Record<string, unknown>): string[] {
  const keys = Object.keys(object);
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

function escapeBeyondAscii(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text;
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** How Python's json.dumps writes the number that json.loads read from `source`. */
export function pythonNumber(source: string): string {
  if (!/[.eE]/.test(source)) return source === "-0" ? "0" : source;
  const value = Number(source);
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  // Both languages choose the same shortest digits; only where they put the point differs.
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
