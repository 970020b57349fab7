// Values as JSON that keeps what JSON loses: bytes, dates, sets, bigints and so on become tagged objects, and an object that
// looks like one is escaped. What cannot be stored (functions, class instances, cycles) is refused, naming its path.
import { LazarusError } from "../../platform/errors.ts";
import type { Json } from "../model/types.ts";

const TAG = "$";
/** Values that come from outside may be this deep: deeper ones exhaust the stack of whatever reads them. */
const MAX_DEPTH = 200;

/** Encodes a value from outside. Throws RUN_NOT_STORABLE, naming the path of what cannot be stored. */
export function encodeValue(value: unknown, path = "value"): Json {
  return encode(value, { names: [path], parents: [], maxDepth: MAX_DEPTH });
}

/**
 * Encodes what a run records. Its values were checked when they came from outside, or by an older version; their
 * depth is no longer limited, so that a write never fails after the work is done.
 */
export function encodeRecord(value: unknown, path = "value"): Json {
  return encode(value, { names: [path], parents: [], maxDepth: Number.POSITIVE_INFINITY });
}

/** The encoder's position: the path is built only for a value that is refused. */
interface Place {
  readonly names: (string | number)[];
  readonly parents: object[];
  readonly maxDepth: number;
}

/** Returns the value that was encoded. */
export function decodeValue(json: Json): unknown {
  if (Array.isArray(json)) return json.map(decodeValue);
  if (typeof json !== "object" || json === null) return json;
  const object = json as Readonly<Record<string, Json>>;
  const tag = object[TAG];
  if (typeof tag === "string" && DECODERS[tag] !== undefined) return DECODERS[tag](object.v as Json);
  return decodeObject(object);
}

/** Whether a value can be encoded. */
export function isStorable(value: unknown): boolean {
  try {
    encodeValue(value);
    return true;
  } catch {
    return false;
  }
}

/** Whether a value was refused because it is nested too deeply. */
export function isTooDeep(error: unknown): boolean {
  return error instanceof LazarusError && error.details?.maxDepth !== undefined;
}

function encode(value: unknown, place: Place): Json {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0) ? value : tagged("number", numberText(value));
    case "bigint":
      return tagged("bigint", String(value));
    case "undefined":
      return tagged("undefined", null);
    case "object":
      return value === null ? null : encodeObject(value, place);
    default:
      throw notStorable(place, `a ${typeof value}`);
  }
}

function encodeObject(value: object, place: Place): Json {
  if (place.parents.includes(value)) throw notStorable(place, "a cycle");
  if (place.parents.length >= place.maxDepth) throw tooDeep(place);
  place.parents.push(value);
  const json = encodeParts(value, place);
  place.parents.pop();
  return json;
}

function encodeParts(value: object, place: Place): Json {
  if (Array.isArray(value)) return encodeItems(value, place);
  if (value instanceof Uint8Array) return tagged("bytes", base64(value));
  if (value instanceof ArrayBuffer) return tagged("buffer", base64(new Uint8Array(value)));
  if (value instanceof Date) return tagged("date", Number.isNaN(value.getTime()) ? null : value.getTime());
  if (value instanceof URL) return tagged("url", value.href);
  if (value instanceof RegExp) return tagged("regexp", [value.source, value.flags]);
  if (value instanceof Set) return tagged("set", encodeItems([...value], place));
  if (value instanceof Map) return tagged("map", encodeItems([...value], place));
  if (value instanceof Error) return encodeError(value, place);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw notStorable(place, `an instance of ${value.constructor?.name ?? "a class"}`);
  }
  const fields: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const each = (value as Record<string, unknown>)[key];
    // An absent field and an undefined one are the same to every reader of these values.
    if (each !== undefined) setField(fields, key, encodeAt(`.${key}`, each, place));
  }
  return Object.hasOwn(fields, TAG) ? tagged("object", fields) : fields;
}

function encodeItems(items: readonly unknown[], place: Place): Json {
  return items.map((each, i) => encodeAt(i, each, place));
}

function encodeAt(name: string | number, value: unknown, place: Place): Json {
  // Most values are text or numbers, whose path is never needed.
  if (typeof value === "string") return value;
  place.names.push(name);
  const json = encode(value, place);
  place.names.pop();
  return json;
}

function encodeError(error: Error, place: Place): Json {
  const { name, message, cause } = error;
  const kept = cause !== undefined && isStorable(cause) ? { cause: encode(cause, place) } : {};
  return tagged("error", { name: String(name), message: String(message), ...kept });
}

const DECODERS: Readonly<Record<string, (json: Json) => unknown>> = {
  number: (text) => (text === "-0" ? -0 : Number(text)),
  bigint: (text) => BigInt(text as string),
  undefined: () => undefined,
  bytes: (text) => new Uint8Array(Buffer.from(text as string, "base64")),
  buffer: (text) => new Uint8Array(Buffer.from(text as string, "base64")).buffer,
  date: (time) => new Date(time === null ? Number.NaN : (time as number)),
  url: (href) => new URL(href as string),
  regexp: (parts) => new RegExp((parts as string[])[0]!, (parts as string[])[1]),
  set: (items) => new Set(decodeValue(items) as unknown[]),
  map: (items) => new Map(decodeValue(items) as [unknown, unknown][]),
  object: (fields) => decodeObject(fields as Readonly<Record<string, Json>>),
  error: (fields) => {
    const { name, message, cause } = fields as { name: string; message: string; cause?: Json };
    const error = new Error(message, cause === undefined ? undefined : { cause: decodeValue(cause) });
    if (name !== "Error") Object.defineProperty(error, "name", { value: name, configurable: true });
    return error;
  },
};

function decodeObject(fields: Readonly<Record<string, Json>>): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [key, each] of Object.entries(fields)) setField(object, key, decodeValue(each));
  return object;
}

/** `__proto__` in a tool's input is a field like any other. */
function setField<T>(object: Record<string, T>, key: string, value: T): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  } else object[key] = value;
}

function tagged(tag: string, v: Json): Json {
  return { [TAG]: tag, v };
}

function numberText(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

function tooDeep({ names }: Place): LazarusError {
  return new LazarusError(
    "RUN_NOT_STORABLE",
    `${names[0]} is nested more than ${MAX_DEPTH} levels deep, which a durable run cannot store`,
    { hint: "pass flatter data", details: { path: String(names[0]), maxDepth: MAX_DEPTH } },
  );
}

function notStorable({ names }: Place, what: string): LazarusError {
  const path = names.map((name) => (typeof name === "number" ? `[${name}]` : name)).join("");
  return new LazarusError("RUN_NOT_STORABLE", `${path} is ${what}, which a durable run cannot store`, {
    hint: "pass plain data, dates, bytes, maps or sets; put functions and connections into the agent's settings",
    details: { path },
  });
}
